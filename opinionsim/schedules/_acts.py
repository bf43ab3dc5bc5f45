"""The acts of the dyadic family, which several schedules declare."""

from __future__ import annotations

from opinionsim.schedules._turns import ActSpec

#: An agent writes a post (Chuang et al. 2023, Algorithm 1; A6).
WRITE = ActSpec("write", template="write", kind="post")
#: An agent reads posts and says what it believes; where none of them says anything, the turn is skipped.
REVIEW = ActSpec("review", template="review", kind="report", unread="skip")
#: An agent says what it believes, and remembers having said so (A12).
REPORT = ActSpec("report", template="report", kind="report")
#: The same, as if for the first time.
REPORT_ONCE = ActSpec("report-once", template="report", kind="report", memory="none")
#: An agent says off the record what it believes, in its own words.
PROBE = ActSpec("probe", template="probe", kind="probe", memory="fork")
#: The same, with a point of the scale.
SELF_REPORT = ActSpec("self-report", template="self-report", kind="self-report", memory="fork")
