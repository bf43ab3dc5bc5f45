"""The sentences of the scripted chat model, and how they are read back.

A stance sentence states one of five intensities, -2 to 2, towards the subject ``{x}``: strongly negative,
slightly negative, neutral, slightly positive, strongly positive. Each is one plain sentence without inner
stops, colons or quotation marks, so that splitting a text at those always gives it back whole. All other
sentences carry no stance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

__all__ = [
    "ALONE",
    "ANSWERS",
    "CLOSERS",
    "CONCLUSIONS",
    "FIRST",
    "INSTRUCTIONS",
    "LEADS",
    "MASKED",
    "MASKED_AGAIN",
    "MODERATION",
    "OPENERS",
    "PLAIN",
    "POSTS",
    "READ",
    "REFLECTIONS",
    "REFUSALS",
    "REMEMBERED",
    "REPORTS",
    "capitalised",
    "n_words",
    "pick_one",
    "sentences",
    "stance",
    "stated",
]

#: What the subject is called where the prompt masks the claim, where it was just named, and elsewhere.
MASKED, MASKED_AGAIN, PLAIN = "Theory XYZ", "this theory", "the claim"

#: Stance sentences of posts.
POSTS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {
        2: (
            "I am fully convinced that {x} is right.",
            "{x} is completely true, and I stand firmly behind it.",
            "I strongly believe in {x}.",
            "There is no doubt in my mind that {x} is true.",
            "I give {x} my full support.",
            "I am absolutely certain that {x} is correct.",
            "I firmly believe that {x} is true.",
            "I agree completely with {x}.",
            "I have no doubts whatsoever that {x} is right.",
            "{x} is definitely true in my view.",
            "I am entirely persuaded that {x} is true.",
        ),
        1: (
            "I am inclined to believe that {x} is right.",
            "I lean towards {x}, although I am not entirely sure.",
            "{x} is probably true, though I still have a few questions.",
            "I somewhat agree with {x}.",
            "I think {x} may well be right.",
            "I tend to believe {x}, with some reservations.",
            "I suspect that {x} is more right than wrong.",
            "{x} seems more likely to be true than false.",
            "I am cautiously in favour of {x}.",
            "I mildly support {x}.",
            "I find {x} fairly convincing, but I am not certain.",
        ),
        0: (
            "I am undecided about {x}.",
            "I honestly do not know whether {x} is true or false.",
            "I am neutral on {x}.",
            "I neither agree nor disagree with {x}.",
            "I have not made up my mind about {x}.",
            "{x} could be true or it could be false, and I cannot tell which.",
            "I do not take a side on {x}.",
            "I see as much reason to believe {x} as to doubt it.",
            "I am on the fence about {x}.",
            "I remain open about {x} and favour neither side.",
            "I have no opinion for or against {x}.",
        ),
        -1: (
            "I have some doubts about {x}, though I would not rule it out.",
            "I am a little sceptical about {x}.",
            "I lean against {x}, although I am not entirely sure.",
            "{x} is probably wrong, though I could be mistaken.",
            "I somewhat disagree with {x}.",
            "I tend to doubt {x}.",
            "I am not quite convinced that {x} is right.",
            "{x} seems more likely to be false than true.",
            "I find {x} somewhat hard to believe.",
            "I am inclined to think that {x} is wrong.",
            "I am cautiously against {x}.",
        ),
        -2: (
            "I am fully convinced that {x} is wrong.",
            "{x} is completely false, and I reject it.",
            "I do not believe {x} at all.",
            "There is no doubt in my mind that {x} is false.",
            "I strongly disagree with {x}.",
            "I am absolutely certain that {x} is incorrect.",
            "I firmly believe that {x} is false.",
            "I disagree completely with {x}.",
            "I reject {x} outright.",
            "{x} is definitely not true in my view.",
            "I have no doubts whatsoever that {x} is wrong.",
        ),
    }
)

#: Stance sentences of reports, probes and reflections.
REPORTS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {
        2: (
            "My honest belief is that {x} is definitely true.",
            "I end up strongly in favour of {x}.",
            "My opinion of {x} is strongly positive.",
            "I am now fully convinced that {x} is correct.",
            "I strongly agree with {x}.",
            "I have complete confidence that {x} is right.",
            "I hold a very positive view of {x} and I am certain that it is true.",
            "I believe without any reservation that {x} is true.",
            "I firmly support {x}.",
            "I am completely certain that {x} is right.",
            "I accept {x} fully and without hesitation.",
        ),
        1: (
            "My opinion of {x} is slightly positive.",
            "I lean slightly in favour of {x}.",
            "I believe that {x} is probably right, but I am not completely sure.",
            "I am somewhat convinced that {x} is true.",
            "I tend to agree with {x}, although some doubts remain.",
            "I think {x} is likely to be true, though I am not certain.",
            "I am slightly inclined to accept {x}.",
            "I partly agree with {x}.",
            "I see {x} as probably true, but not as certain.",
            "I hold a mildly positive view of {x}.",
            "I find {x} rather plausible.",
        ),
        0: (
            "My opinion of {x} is neutral.",
            "I am neither for nor against {x}.",
            "I cannot say whether {x} is right or wrong.",
            "I remain undecided about {x}.",
            "I am still uncertain about {x} and lean in neither direction.",
            "I neither accept nor reject {x}.",
            "I stay neutral on {x} for now.",
            "I do not lean towards believing or disbelieving {x}.",
            "I have no firm view on whether {x} is true.",
            "I am equally open to {x} being true and to it being false.",
            "I am torn evenly between accepting and rejecting {x}.",
        ),
        -1: (
            "My opinion of {x} is slightly negative.",
            "I lean slightly against {x}.",
            "I believe that {x} is probably false, but I am not completely sure.",
            "I am somewhat doubtful about {x}.",
            "I tend to disagree with {x}, although I see some merit in it.",
            "I think {x} is unlikely to be true, though I am not certain.",
            "I am slightly inclined to reject {x}.",
            "I partly disagree with {x}.",
            "I see {x} as probably wrong, but not as certainly wrong.",
            "I hold a mildly negative view of {x}.",
            "I find {x} rather implausible.",
        ),
        -2: (
            "My honest belief is that {x} is definitely false.",
            "I end up strongly against {x}.",
            "My opinion of {x} is strongly negative.",
            "I am now fully convinced that {x} is incorrect.",
            "I strongly reject {x}.",
            "I have complete confidence that {x} is wrong.",
            "I hold a very negative view of {x} and I am certain that it is false.",
            "I believe without any reservation that {x} is false.",
            "I do not accept {x} in any way.",
            "I am completely certain that {x} is wrong.",
            "I dismiss {x} fully and without hesitation.",
        ),
    }
)

#: First sentences of posts.
OPENERS = (
    "I have been thinking about {x} lately.",
    "A few words about {x} from me.",
    "People around me keep bringing up {x}.",
    "Here is where I stand today.",
    "My feed is full of talk about {x} today.",
    "Let me say where I am on {x}.",
    "I keep coming back to the question of {x}.",
    "After a long day I want to say a few words.",
)

#: Last sentences of posts.
CLOSERS = (
    "What do the rest of you think?",
    "I am curious how others see it.",
    "Tell me how you look at it.",
    "That is where I am today.",
    "I would like to hear from more people.",
    "Let us talk about it.",
    "How do you see it?",
    "That is my position for today.",
)

#: Lead-ins of reports; ``{me}`` is "I, NAME," or "I".
LEADS = (
    "{me} went through this step by step.",
    "{me} have taken a moment to think about {x} step by step.",
    "{me} want to lay out my thinking about {x} one step at a time.",
    "{me} looked at {x} carefully, one step after the other.",
    "{me} tried to think about {x} in an orderly way.",
    "{me} asked myself where I stand on {x}.",
)

#: First steps of reports.
FIRST = (
    "First, I went back to what I thought before.",
    "First, I reminded myself of where I stood earlier.",
    "To begin with, I looked at my own earlier position.",
    "First, I took stock of my own earlier position.",
    "I started from the view I already held.",
    "I began by remembering my own starting point.",
)

#: Second steps of reports on a post; ``{posts}`` is "post" or "posts".
READ = (
    "Then I read the {posts} I was shown and weighed the words.",
    "Next, I went over the {posts} again to see what was meant.",
    "Second, I compared the {posts} I had just read with my own experience.",
    "After that I read the {posts} slowly and asked what there was to learn.",
    "Then I took in the {posts} and thought about the bearing on the question.",
    "Second, I asked myself how the {posts} I saw should count for me.",
)

#: Second steps of reports that follow no post.
ALONE = (
    "Then I went over the points that matter to me.",
    "Next, I looked at what I know from my own life.",
    "Second, I thought about how I usually form a view.",
    "After that I gave myself some quiet time with the question.",
    "Then I asked myself what my experience tells me.",
    "Second, I turned the question over once more.",
)

#: Sentences that lead to the stance of a report.
CONCLUSIONS = (
    "Finally, I asked myself what I honestly believe now.",
    "Putting these steps side by side, I come to my view.",
    "At the end of this I can say where I stand.",
    "So this is my answer.",
    "Taking all of it together, here is my honest view.",
    "That brings me to my conclusion.",
)

#: First sentences of reflections.
REMEMBERED = (
    "Looking back, I have spent some time with {x}.",
    "These exchanges have kept {x} on my mind.",
    "What stays with me is how the conversation about {x} unfolded.",
    "I remember the main points of what was said about {x}.",
    "My experience so far has been a conversation about {x} with strangers.",
    "I have gone over my experience with {x} once more.",
)

#: Second sentences of reflections.
REFLECTIONS = (
    "Some words stayed with me longer than others.",
    "I took note of how people argued.",
    "I keep the gist of it and let the details go.",
    "I also thought about my own part in it.",
    "Each exchange made me look at my own position again.",
    "I want to remember this in a few words.",
)

#: What the model says when it declines.
REFUSALS = (
    "I'm sorry, but I can't help with that request.",
    "I am not able to take part in this conversation.",
    "I'm sorry, but I cannot share an opinion on this subject.",
    "I have to decline to answer this.",
    "Sorry, this is something I would rather not respond to.",
    "I cannot continue with this request.",
)

#: What is said to a task without a claim. They fit any task, and say nothing of it.
ANSWERS = (
    "I would begin with what can be done at once and costs little.",
    "I would first ask those who have to live with the outcome.",
    "Most of it depends on who pays for it, and when.",
    "I would try it in one place, look at the result, and go on from there.",
    "What has worked elsewhere deserves a second look.",
    "The rules should be simple enough to be explained in one sentence.",
    "Those who are nearest to the matter should decide it.",
    "Somebody has to answer for it, or it will not last.",
    "I would write down what speaks for it and what speaks against it.",
    "A plan for ten years is worth more than one for ten weeks.",
    "What is saved at the beginning is often paid twice at the end.",
    "I would keep what there is and mend it step by step.",
)

#: What a moderator says of the responses, with their number as {n}.
MODERATION = (
    "Most of the {n} responses begin with small steps, and some with a larger plan.",
    "Put together, the {n} responses ask for a plain rule and for somebody who answers for it.",
    "The {n} responses differ in where to begin and agree that it has to begin.",
)

#: Instructions that a moderator writes for itself.
INSTRUCTIONS = (
    "Group responses that say the same, keep what is new, and leave out repetition.",
    "Weigh every response alike, name what they share, and state where they differ.",
    "Take the clearest response as a frame and add what the others have that it lacks.",
)


def pick_one(n: int) -> str:
    """The request to name one of n numbered texts, with which a judge's question ends."""
    return f"Answer with one number from 1 to {n} and nothing else."


#: Sentence ends, and the marks that set a quoted or introduced sentence off from what introduces it.
_BREAKS = re.compile('[.!?:\n"\u201c\u201d\u00ab\u00bb]+')
_SUBJECT = re.compile(r"\b(?:theory xyz|(?:this|that|the) (?:theory(?! xyz)|claim))\b")
_WORD = re.compile(r"[a-z]+(?:['\u2019]t)?")


def _words(spaced: str) -> frozenset[str]:
    return frozenset(spaced.split())


_SUPPORT = _words(
    "accept accurate agree agreed believe certain convinced convincing correct favour favor persuaded plausible right "
    "sound support supports true valid"
)
_REJECT = _words(
    "absurd against bogus debunked disagree disbelieve dismiss doubt doubtful doubts false hoax implausible incorrect "
    "lie misleading mistaken nonsense reject ridiculous sceptical skeptical unconvinced untrue wrong"
)
_UNDECIDED = _words("neither neutral undecided unsure whether")
_NEGATORS = _words("not no never cannot hardly without")
_INTENSIFIERS = _words(
    "absolutely certainly clearly completely definitely entirely firmly fully obviously strongly totally utterly "
    "undoubtedly wholly"
)


def capitalised(sentence: str) -> str:
    """The sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]


def _sentence(part: str) -> str:
    """One part of a split lower-case text, the subject replaced by ``{x}``, spaces made single."""
    return _SUBJECT.sub("{x}", " ".join(part.split()))


def sentences(text: str) -> list[str]:
    """The sentences of a text, lower case, the subject replaced by ``{x}``, spaces made single."""
    return [sentence for sentence in map(_sentence, _BREAKS.split(text.lower())) if sentence]


_LEVELS = {
    sentences(sentence)[0]: level
    for bank in (POSTS, REPORTS)
    for level, stances in bank.items()
    for sentence in stances
}


def _polarity(sentence: str) -> int | None:
    """Rough level of a sentence that is not one of the model's own, None when it takes no side."""
    words = _WORD.findall(sentence)
    rejects = not _REJECT.isdisjoint(words)
    takes_side = rejects or not _SUPPORT.isdisjoint(words)
    if "{x}" not in sentence or not takes_side or not _UNDECIDED.isdisjoint(words):
        return None
    negations = sum(word in _NEGATORS or word.endswith(("n't", "n\u2019t")) for word in words)
    side = 1 if rejects == bool(negations % 2) else -1
    return side * 2 if negations == 0 and not _INTENSIFIERS.isdisjoint(words) else side


def stated(text: str) -> int | None:
    """The level of the last stance sentence of the scripted model in a text.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    int or None
        -2 to 2 by exact lookup of each sentence; None when no sentence is known.
    """
    for line in reversed(text.split("\n")):
        level = _stated_in(line)
        if level is not None:
            return level
    return None


# Cached, since prompts repeat the lines of a template and several agents read the same post.
@lru_cache(maxsize=1 << 14)
def _stated_in(line: str) -> int | None:
    """The level of the last stance sentence in a line."""
    # Backwards, since the stance mostly is the last sentence or the one before it.
    for part in reversed(_BREAKS.split(line.lower())):
        level = _LEVELS.get(_sentence(part))
        if level is not None:
            return level
    return None


def n_words(text: str) -> int:
    """Number of words in a text, split at white space."""
    return sum(map(_n_words_in, text.split("\n")))


@lru_cache(maxsize=1 << 14)
def _n_words_in(line: str) -> int:
    """Number of words in a line; cached for the same reason as `_stated_in`."""
    return len(line.split())


@lru_cache(maxsize=1 << 16)
def stance(text: str) -> int | None:
    """The level a reader takes from somebody's post.

    Posts by the scripted model are read exactly (:func:`stated`). Any other post is read roughly. Only
    sentences count that name "Theory XYZ" or "this", "that" or "the" before "theory" or "claim". A word of
    rejection ("false", "doubt") puts such a sentence on the negative side, else a word of support ("true",
    "agree") on the positive one; an odd number of negations turns it round; words such as "whether" and
    "undecided" void it. The last sentence that takes a side gives the level: 2 when it holds a word such as
    "completely" and no negation, else 1.

    Parameters
    ----------
    text : str
        A post.

    Returns
    -------
    int or None
        -2 to 2, or None for a post that names no subject or takes no side, which influences nobody.
    """
    level = stated(text)
    if level is not None:
        return level
    levels = [_polarity(sentence) for sentence in sentences(text)]
    return next((level for level in reversed(levels) if level is not None), None)
