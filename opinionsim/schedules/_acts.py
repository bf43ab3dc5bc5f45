"""The acts of the dyadic family, which several schedules declare."""

from __future__ import annotations

from dataclasses import replace

from opinionsim.schedules._turns import ActSpec

#: An agent writes a post (Chuang et al. 2023, Algorithm 1; A6).
WRITE = ActSpec("write", template="write", kind="post")
#: An agent reads posts and says what it believes; if all posts are refused, empty or skipped, so is the turn.
REVIEW = ActSpec("review", template="review", kind="report", unread="skip")
#: An agent says what it believes, and remembers that report (A12).
REPORT = ActSpec("report", template="report", kind="report")
#: An agent says what it believes, without memory of earlier reports.
REPORT_ONCE = replace(REPORT, name="report-once", memory="none")
#: An agent says off the record what it believes, in its own words.
PROBE = ActSpec("probe", template="probe", kind="probe", memory="fork")
#: An agent states off the record what it believes, as a point of the scale.
SELF_REPORT = ActSpec("self-report", template="self-report", kind="self-report", memory="fork")
#: An agent answers the task, after reading what others answered.
RESPOND = ActSpec("respond", template="respond", kind="response", memory="none")
#: A moderator reads all answers and gives one of its own.
MODERATE = ActSpec("moderate", template="moderate", kind="moderation", memory="none", unread="skip")
#: A moderator writes instructions for itself from the task.
INSTRUCT = ActSpec("instruct", template="instruct", kind="instruction", memory="none", attempts=10)
