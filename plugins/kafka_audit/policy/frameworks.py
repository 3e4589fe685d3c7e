"""``frameworks/*.yaml``: which requirements of a compliance framework the controls support; support does not prove conformity."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from kafka_audit.input_files.fields import Code, Name, Strict, repeated


class Requirement(Strict):
    """One requirement and the controls that support it.

    ``rationale``: why these controls support it. ``cannot_show``: what no result of these controls can show of it. ``strict``: passes under
    a loosened parameter do not count as support.
    """

    id: Name
    title: Annotated[str, Field(min_length=1)]
    supported_by: list[Code] = Field(min_length=1)
    rationale: Annotated[str, Field(min_length=20)]
    cannot_show: str = ""
    strict: bool = True


class Framework(Strict):
    """One framework file."""

    version: Literal[1]
    id: Name
    title: Annotated[str, Field(min_length=1)]
    edition: Name
    source: Annotated[str, Field(min_length=1)]
    requirements: list[Requirement] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_differ(self) -> "Framework":
        twice = repeated(requirement.id for requirement in self.requirements)
        if twice:
            raise ValueError(f"requirements: {twice} appear twice: give each its own id")
        return self
