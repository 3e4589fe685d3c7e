"""The README.txt of an evidence package: how an auditor checks it without this product."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_audit.audit.formats import NotWritten
from kafka_audit.audit.reviews import Review
from kafka_audit.safe_text import visible
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.manifest import MANIFEST, SIGNATURE
from kafka_audit.store.stored_zip import SUMS


@dataclass(frozen=True, kw_only=True)
class Packed:
    """The audit in a package. ``previous``: the audit before it in the chain. ``release``: of the product that made the package.

    ``reviews``: those that can be relied on.
    """

    cluster: str
    seal: Seal
    previous: Seal | None
    verdict: str
    snapshot_id: str
    snapshot_sha256: str
    signed: bool
    release: str
    reviews: tuple[Review, ...] = ()

    @property
    def audit(self) -> str:
        return f"audits/{self.cluster}/{self.seal.audit_id}"

    @property
    def before(self) -> str | None:
        return f"audits/{self.cluster}/{self.previous.audit_id}" if self.previous else None

    @property
    def snapshot(self) -> str:
        return f"evidence/{self.cluster}/{self.snapshot_id}"

    def review(self, one: Review) -> str:
        return f"reviews/{self.cluster}/{one.review_id}"

    @property
    def sealed(self) -> tuple[str, ...]:
        """The sealed folders."""
        return (self.audit, self.snapshot, *map(self.review, self.reviews))


def readme(packed: Packed, missing: Sequence[NotWritten] = (), unreliable: Sequence[Review] = ()) -> str:
    """The text, in ASCII if the reasons of what is not packed are.

    ``missing``: the formats of the report that could not be made. ``unreliable``: reviews that are left out.

    Its shell commands run in the folder that the zip file makes.
    """
    return f"""EVIDENCE PACKAGE OF ONE KAFKA AUDIT

Cluster            {packed.cluster}
Audit              {packed.seal.audit_id}, number {packed.seal.sequence} of this cluster
Verdict            {packed.verdict}
Snapshot judged    {packed.snapshot_id}
Seal (witness)     {packed.seal.manifest_sha256}
Packed by          kafka-audit {packed.release}

You need no kafka-audit to check this package, only a shell with sha256sum, find, grep and awk (on macOS: write "shasum -a 256" for
sha256sum).


WHAT IS IN IT

{packed.audit}/
    The audit as it was sealed. settings/ and lag/ hold its results as Parquet files: findings.parquet has one row for each control and
    resource, summary.parquet one for each control. gate/ says whether evidence and findings met the policy, report/ is the report that
    was written then, inputs/ holds what the audit used: policy/, controls/ (the rules), and copies of the history that is kept for a
    limited time. {MANIFEST} lists the sha256 of every file{f", and {SIGNATURE} is its signature" if packed.signed else ""}.
{packed.snapshot}/
    The snapshot: what was read from the cluster, as Parquet files, with a {MANIFEST} of its own.
{_previous_listed(packed)}{_reviews_listed(packed, unreliable)}reports/
    The report in every format that kafka-audit {packed.release} writes, made again from the files above. These are not sealed: see 6.
{_missing(missing)}chain.json
    The place of the audit among the audits of its cluster. "state" is "agrees" if the cluster's record of the chain did not contradict
    it when this package was made, and "missing" if there was no record.
{SUMS}
    The sha256 of every file in this package.

Not in it: other audits, and the earlier whole snapshots that this one was compared with. Their names and the sha256 of their manifests are
in {packed.audit}/settings/history.json and lag/history.json.
In names of files, characters other than a-z A-Z 0-9 _ . - ~ + = , @ ( ) and space are written as % and two hexadecimal digits.


HOW TO CHECK IT

1.  Nothing was changed, lost or added by accident since the package was made. In the folder of this file:

        sha256sum --check --quiet {SUMS}
        find . ! -type d ! -path ./{SUMS} |
          awk 'NR == FNR {{ listed["./" substr($0, 67)]; next }} !($0 in listed) {{ print "not listed: " $0 }}' {SUMS} -

    prints nothing. Whoever changes a file on purpose can change {SUMS}, too; the next steps find that.

2.  The files are those that were sealed. The {MANIFEST} of the snapshot and of the audit were written when each was sealed, and list
    the sha256 of every file. This compares them with the files that are here, and must print nothing:

        for folder in {" ".join(packed.sealed)}; do
          files() {{ find "$folder" ! -type d ! -path "$folder/{MANIFEST}" ! -path "$folder/{SIGNATURE}" "$@"; }}
          files | LC_ALL=C sort | while IFS= read -r file; do
            hash=$(sha256sum < "$file" | cut -c 1-64)
            case "$file" in
              *%*) grep -q "\\"$hash\\"" "$folder/{MANIFEST}" ;;
              *) grep -F -A 3 "\\"${{file#"$folder/"}}\\": {{" "$folder/{MANIFEST}" | grep -q "\\"$hash\\"" ;;
            esac || echo "not as it was sealed: $file"
          done
          here=$(files -exec sha256sum {{}} + | cut -c 1-64 | sort)
          sealed=$(grep '"sha256":' "$folder/{MANIFEST}" | grep -o '[0-9a-f]\\{{64\\}}' | sort)
          [ "$here" = "$sealed" ] || echo "files were changed, removed or added: $folder"
        done

3.  The snapshot is the one that was judged. The manifest of the audit names the sha256 of the manifest of the snapshot:

        sha256sum {packed.snapshot}/{MANIFEST}
        grep {packed.snapshot_sha256} {packed.audit}/{MANIFEST}

    The first prints {packed.snapshot_sha256},
    and the second prints a line.

{_previous_checked(packed)}
5.  Nobody rewrote all of it. Whoever can write all files can make them agree with each other, so the steps above do not show that.
    This does:

        sha256sum {packed.audit}/{MANIFEST}

    prints {packed.seal.manifest_sha256}.
    The installation wrote the same value to the logs of the tasks "report" and "gate" when the audit ended, and its command printed it.
    Ask for it over another channel than the one over which you got this package, and compare.

6.  Which report to believe. Steps 2 to 5 cover {packed.audit}/ and {packed.snapshot}/,
    {_and_reviews(packed)}and nothing else: not reports/, not chain.json, not this text. The sealed report is in {packed.audit}/report/.
    This names the files in reports/ that are not the same as the sealed ones, also those of formats that were not written then:

        for file in reports/*; do
          cmp -s "$file" "{packed.audit}/report/${{file#reports/}}" || echo "not sealed: $file"
        done

    Nothing here shows that nobody changed those. kafka-audit can write them again from the files that were sealed (kafka-audit report).
{_signature(packed)}{_reviews_checked(packed)}"""


def _missing(missing: Sequence[NotWritten]) -> str:
    return "".join(f"    Missing: {one}.\n" for one in missing)


def _previous_listed(packed: Packed) -> str:
    if packed.before is None:
        return ""
    return f"{packed.before}/{MANIFEST}\n    The manifest of the audit before it, and nothing else of that audit.\n"


def _previous_checked(packed: Packed) -> str:
    if packed.previous is None:
        return "4.  It is the first audit of its cluster in the chain: its manifest names no audit before it.\n"
    return f"""4.  The audit follows the one before it. Its manifest names the sha256 of the manifest of audit {packed.previous.audit_id}:

        sha256sum {packed.before}/{MANIFEST}
        grep {packed.previous.manifest_sha256} {packed.audit}/{MANIFEST}

    The first prints {packed.previous.manifest_sha256},
    and the second prints a line.
"""


def _signature(packed: Packed) -> str:
    if not packed.signed:
        return "\nThe installation did not sign this audit.\n"
    sealed = packed.audit
    return f"""
7.  The audit is signed. With the installation's public key, seal.key.pub, which you did not get with this package, openssl 3 and jq:

        jq -r .payload {sealed}/{SIGNATURE} | base64 -d > payload
        jq -r '.signatures[0].sig' {sealed}/{SIGNATURE} | base64 -d > signature
        {{ printf 'DSSEv1 28 application/vnd.in-toto+json %s ' "$(stat -c %s payload)"; cat payload; }} > signed
        openssl pkeyutl -verify -rawin -pubin -inkey seal.key.pub -in signed -sigfile signature
        jq -r '.subject[0].digest.sha256' payload

    The fourth command says that the signature is verified, and the last prints {packed.seal.manifest_sha256}.
"""


def _and_reviews(packed: Packed) -> str:
    return "step 2 reviews/, too, " if packed.reviews else ""


def _reviews_listed(packed: Packed, unreliable: Sequence[Review]) -> str:
    if not packed.reviews and not unreliable:
        return ""
    why = {visible(one.review_id): visible("; ".join(one.problems)) for one in unreliable}
    left_out = "".join(f"    Missing: {name}, because it is not as it was sealed ({said}).\n" for name, said in why.items())
    return f"""reviews/{packed.cluster}/
    What people answered to the failed audit, each in a sealed folder of its own: review.json says who decided what, when and why, and
    waivers.yaml lists the waivers that are proposed after an acceptance. A review changes nothing of the audit or of its verdict.
{left_out}"""


def _reviews_checked(packed: Packed) -> str:
    if not packed.reviews:
        return ""
    of_audit = "\n".join(
        f"        grep -H {one.record.audit.manifest_sha256} {packed.review(one)}/{MANIFEST}" for one in packed.reviews if one.record
    )
    witnesses = "\n".join(f"    {one.manifest_sha256} {one.review_id}" for one in packed.reviews)
    return f"""
{8 if packed.signed else 7}.  The reviews are of this audit. The manifest of each names the sha256 of the manifest of the reviewed audit:

{of_audit}

    Each command prints a line. {_earlier(packed)}Nobody rewrote the reviews if

        sha256sum reviews/{packed.cluster}/*/{MANIFEST}

    prints these, and the installation wrote the same to the logs of the tasks "record_review":

{witnesses}
"""


def _earlier(packed: Packed) -> str:
    earlier = [one.review_id for one in packed.reviews if one.audit_state != "as reviewed"]
    if not earlier:
        return ""
    return f'{", ".join(earlier)}: of an earlier try of the audit, whose sha256 the audit\'s manifest lists under "replaces". '
