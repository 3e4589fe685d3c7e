"""What a reviewer wrote is checked before it counts as an acceptance, and everything that is wrong is said at once."""

from typing import Any

import pytest
from reviewed_audits import answer, kept, rejection

from kafka_audit.audit.review_answer import ACCEPTED, REJECTED, UNANSWERED, check_acceptance, read_answer
from kafka_audit.errors import ConfigurationError, IntegrityError

ANSWERED = "2026-11-21T08:30:00+00:00"


def problems(**changes: Any) -> str:
    with pytest.raises(ConfigurationError) as found:
        check_acceptance(answer(**changes), 90)
    return str(found.value)


@pytest.mark.parametrize(
    ("expires", "at"),
    [
        ("2026-11-22", "2026-11-22T00:00:00+00:00"),
        ("2026-12-31", "2026-12-31T00:00:00+00:00"),
        ("2026-12-31T12:00:00+02:00", "2026-12-31T10:00:00+00:00"),
        ("2026-12-31T12:00:00Z", "2026-12-31T12:00:00+00:00"),
        (" 2027-02-19 ", "2027-02-19T00:00:00+00:00"),
    ],
)
def test_a_complete_answer_is_accepted(expires: str, at: str) -> None:
    given = answer(expires=expires)
    check_acceptance(given, 90)
    assert (given.decision, given.expires_at.isoformat()) == (ACCEPTED, at)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reason": "because"}, "reason: has 7 characters; write at least 10"),
        ({"reason": "         x"}, "reason: has 1 characters"),
        ({"reason": None}, "reason: is empty"),
        ({"reason": "x" * 2001}, "reason: has 2,001 characters; write at most 2,000"),
        ({"ticket": "  "}, "ticket: is empty"),
        ({"ticket": "T" * 101}, "ticket: has 101 characters"),
        ({"owner": ""}, "owner: is empty"),
        ({"owner": "rita  REVIEWER"}, "owner: 'rita  REVIEWER' is the reviewer"),
        ({"owner": " 7"}, "owner: '7' is the reviewer"),
        ({"owner": "Rita Reviewer (7)"}, "is the reviewer"),
        ({"expires": None}, "expires: is empty; write a date like"),
        ({"expires": "soon"}, "expires: 'soon' is not a date"),
        ({"expires": "2026-12-31T12:00:00"}, "is not a date"),
        ({"expires": "2026-11-21"}, "is not after the day of the answer in UTC"),
        ({"expires": "2026-11-21T23:00:00Z"}, "is not after the day of the answer in UTC"),
        ({"expires": "2027-02-20"}, "is more than 90 days away (KAFKA_AUDIT_REVIEW_MAX_DAYS)"),
        ({"expires": "9999-12-31T23:59:59-23:00"}, "is not a date"),
        ({"responded_by_user": None}, "Airflow does not say who approved"),
    ],
)
def test_an_answer_that_cannot_be_used_says_which_field_and_how_to_correct_it(changes: dict[str, Any], said: str) -> None:
    text = problems(**changes)
    assert said in text
    assert "clear the task `review`" in text
    assert "the verdict stays FAILED" in text
    assert text.count("\n  ") == 1, "only that field is wrong"


def test_all_problems_are_said_at_once() -> None:
    assert problems(reason="", ticket="", owner="", expires="").count(": is empty") == 4


def test_a_rejection_and_a_timeout_are_told_apart_and_demand_no_text() -> None:
    assert read_answer(rejection()).decision == REJECTED
    timed_out = answer(chosen_options=["Reject"], responded_by_user=None, timedout=True)
    assert (timed_out.decision, timed_out.reviewer) == (UNANSWERED, None)


def test_an_answer_that_came_just_before_the_timeout_counts() -> None:
    assert answer(timedout=False, chosen_options=["Approve"]).decision == ACCEPTED


def test_with_all_admins_the_reviewer_is_nobody_in_particular() -> None:
    anonymous = answer(responded_by_user={"id": "Anonymous", "name": "Anonymous"}).reviewer
    assert anonymous is not None and not anonymous.is_known
    known = answer().reviewer
    assert known is not None and known.is_known
    assert known.text == "Rita Reviewer (7)"


def test_the_name_of_a_reviewer_fits_into_a_waiver() -> None:
    for user in ({"id": "i" * 300, "name": "n" * 300}, {"id": "7", "name": "n" * 300}, {"id": "7", "name": " "}):
        reviewer = answer(responded_by_user=user).reviewer
        assert reviewer is not None
        assert 1 <= len(reviewer.text) <= 100


@pytest.mark.parametrize(
    "broken", [{"responded_at": "yesterday"}, {"responded_at": "2026-11-21T08:30:00"}, {"responded_by_user": {"id": 1}}]
)
def test_what_is_no_answer_at_all_is_an_integrity_error(broken: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match="clear the task review"):
        read_answer(kept(**broken))


def test_half_a_character_does_not_break_the_record() -> None:
    assert answer(reason="replicas \ud800 are coming").reason == "replicas ? are coming"
