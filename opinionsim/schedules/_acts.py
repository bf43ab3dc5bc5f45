"""The acts of the dyadic family, which several schedules declare."""

from __future__ import annotations

from dataclasses import replace

from opinionsim.schedules._turns import ActSpec

#: What all questions to persons begin with: the task, and the question or claim, in plain words.
ABOUT = (
    "{% if task %}{{ task }}\n\n{% endif %}"
    "{% if question and question != task %}The question: {{ question }}\n\n"
    "{% elif claim %}The claim: {{ claim }}\n\n{% endif %}"
)
_BELIEF = ABOUT + "What do you honestly believe at this moment? Say it in a few sentences."
_LENGTH = "{% if post_words %}, in {{ post_words }} words at most{% endif %}."

#: An agent writes a post (Chuang et al. 2023, Algorithm 1; A6).
WRITE = ActSpec(
    "write",
    template="write",
    kind="post",
    person=ABOUT + "Write a post that says what you honestly believe" + _LENGTH,
)
#: An agent reads posts and says what it believes; if all posts are refused, empty or skipped, so is the turn.
REVIEW = ActSpec(
    "review",
    template="review",
    kind="report",
    unread="skip",
    person=ABOUT + "Read what is above. What do you honestly believe now, and why? Say it in a few sentences.",
)
#: An agent says what it believes, and remembers that report (A12).
REPORT = ActSpec("report", template="report", kind="report", person=_BELIEF)
#: An agent says what it believes, without memory of earlier reports.
REPORT_ONCE = replace(REPORT, name="report-once", memory="none")
#: An agent says off the record what it believes, in its own words.
PROBE = ActSpec("probe", template="probe", kind="probe", memory="fork", person=_BELIEF + " Nobody here is shown it.")
#: An agent states off the record what it believes, as a point of the scale.
SELF_REPORT = ActSpec(
    "self-report",
    template="self-report",
    kind="self-report",
    memory="fork",
    person=ABOUT + "Which of these comes closest to your opinion at this moment? Nobody here is shown your answer.",
)
#: An agent answers the task, after reading what others answered.
RESPOND = ActSpec(
    "respond",
    template="respond",
    kind="response",
    memory="none",
    person=ABOUT + "{% if received %}Above is what others have answered. {% endif %}Write your answer" + _LENGTH,
)
#: A moderator reads all answers and gives one of its own.
MODERATE = ActSpec(
    "moderate",
    template="moderate",
    kind="moderation",
    memory="none",
    unread="skip",
    person=ABOUT + "You are the moderator. Read all answers above, and write one that does justice to them.",
)
#: A moderator writes instructions for itself from the task.
INSTRUCT = ActSpec("instruct", template="instruct", kind="instruction", memory="none", attempts=10)
