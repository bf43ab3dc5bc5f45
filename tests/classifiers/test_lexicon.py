"""What the rules read from texts; every example was written for these tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.classifiers import Item, items_of, load_classifier
from opinionsim.classifiers._lexicon_text import clauses, stem, tokens
from opinionsim.foundation.data import data_folder
from opinionsim.llm import phrases
from opinionsim.opinions import OpinionScale, ambiguous
from opinionsim.topics import Claim, load_topics

LEXICON = load_classifier("lexicon")
_ROOT = Path(__file__).parents[2]


def code(claim: str, text: str) -> float | None:
    value = LEXICON.classify([Item(text, Claim(claim, "topic", "truth"))]).value[0]
    return None if np.isnan(value) else value


#: Both orders of the two claims of each topic: the claim asked about, and the other side.
SIDES = [
    pair
    for topic in load_topics(data_folder("topics") / "chuang2024.yaml").values()
    for pair in (tuple(topic.claims.values()), tuple(topic.claims.values())[::-1])
]

#: What somebody else says, what was believed at first, what is dismissed or disagreed with: {x} is the claim asked
#: about, {y} the other side; each with the side of the author.
TEMPLATES = [
    ("I disagree with the stranger's post, which says that {x}.", -1),
    ("I disagree with the post, which says that {y}.", 1),
    ("The tweet claims that {x}. This contradicts what I believe, and I dismiss it completely.", -1),
    ("The tweet claims that {y}. This contradicts what I believe, and I dismiss it completely.", 1),
    ("The stranger claims that {y}. I disagree completely.", 1),
    ("The stranger claims that {x}. I disagree completely.", -1),
    ("My initial belief was that {x}. After reading the post I no longer think so.", -1),
    ("My initial belief was that {y}. After reading the post I no longer think so.", 1),
    ("My initial belief was that {x}, but I have changed my mind and now reject it.", -1),
    ("My initial belief was that {y}, but I have changed my mind and now reject it.", 1),
    ("I do not agree that {x}.", -1),
    ("I do not agree that {y}.", 1),
    ("I do not agree with the claim that {x}.", -1),
    ("I believe that {x}.", 1),
    ("I believe that {y}.", -1),
    ("I do not believe that {y}.", 1),
    ("I firmly believe that {x}. The post says that {y}, and I reject that.", 1),
    ("The post says that {x}. I am not persuaded by it.", -1),
    ("The stranger insists that {y}. I could not agree more.", -1),
    ("The stranger insists that {x}. I agree.", 1),
    ("The author argues that {y}, but I strongly disagree.", 1),
    ("It is false that {x}.", -1),
    ("It is not true that {y}.", 1),
    ("I used to believe that {x}, but I do not any more.", -1),
    ("I used to think that {y}. I was wrong.", 1),
    ("The stranger doubts that {x}. I do not share those doubts.", 1),
    ("I reject the idea that {x}.", -1),
    ("I am convinced that {x}, whatever the post says.", 1),
    ("I strongly doubt that {y}.", 1),
]


@pytest.mark.parametrize(("template", "side"), TEMPLATES)
def test_the_side_is_right_for_every_topic_in_both_framings(template: str, side: int) -> None:
    claims = [Claim(x, "topic", "truth") for x, _ in SIDES]
    coded = LEXICON.classify(items_of([template.format(x=x, y=y) for x, y in SIDES], claims)).value
    wrong = [(x, value) for (x, _), value in zip(SIDES, coded, strict=True) if np.sign(value) != side]
    assert not wrong


@pytest.mark.parametrize("name", ["Theory XYZ", "XYZ", "the theory"])
@pytest.mark.parametrize(
    ("template", "side"),
    [
        ("I disagree with the post, which says that {x} is true.", -1),
        ("I disagree with the stranger's post, which says that {x} is false.", 1),
        ("The tweet claims that {x} is true. This contradicts what I believe, and I dismiss it completely.", -1),
        ("The tweet claims that {x} is false. This contradicts what I believe, and I dismiss it completely.", 1),
        ("The stranger claims that {x} is wrong. I disagree completely.", 1),
        ("The stranger supports {x}. I disagree completely.", -1),
        ("My initial belief was that {x} is true. After reading the post I no longer think so.", -1),
        ("My initial belief was that {x} is false. After reading the post I no longer think so.", 1),
        ("My initial belief was that {x} is right, but I have changed my mind and now reject it.", -1),
        ("I do not agree with {x}.", -1),
        ("I do not agree that {x} is false.", 1),
        ("I do not agree with the stranger, who rejects {x}.", 1),
        ("The stranger rejects {x}. I do not.", 1),
    ],
)
def test_the_side_is_right_under_a_masked_name(template: str, side: int, name: str) -> None:
    value = code("fire is cold", template.format(x=name))
    assert value is not None
    assert np.sign(value) == side


@pytest.mark.parametrize(
    "text",
    [
        "I love pizza.",
        "I hate Mondays.",
        "Bananas are yellow.",
        "This soup is wrong.",
        "The weather is lovely today.",
        "I really enjoyed the film last night.",
        "I believe in hard work.",
        "I support my local football team.",
        "I agree that dinner was great.",
        "We had a wonderful time at the lake.",
        "Nothing beats a good book.",
        "That song is amazing!",
    ],
)
@pytest.mark.parametrize("claim", ["fire is cold", "the Earth is flat", "US astronauts never landed on the moon"])
def test_sentences_about_something_else_have_no_value(claim: str, text: str) -> None:
    assert code(claim, text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Apr\u00e8s avoir lu ce message, je ne crois pas du tout \u00e0 la Th\u00e9orie XYZ et je la rejette.",
        "Nachdem ich das gelesen habe, glaube ich weiterhin fest an Theory XYZ und bin davon \u00fcberzeugt.",
        "Despu\u00e9s de leer esto, sigo creyendo firmemente en Theory XYZ, no tengo ninguna duda.",
    ],
)
def test_other_languages_have_no_value(text: str) -> None:
    assert code("fire is cold", text) is None


@pytest.mark.parametrize(
    "text",
    [
        "I believe Theory XYZ is true. I reject Theory XYZ.",
        "I reject Theory XYZ. I believe Theory XYZ is true.",
        "I strongly support Theory XYZ. I strongly oppose Theory XYZ.",
    ],
)
def test_two_stances_against_each_other_are_ambiguous(text: str) -> None:
    claim = Claim("fire is cold", "fire", "falsehood")
    probabilities = LEXICON.classify(items_of([text, text.partition(".")[0]], claim)).probabilities
    assert ambiguous(probabilities).tolist() == [True, False]


def test_a_change_of_mind_is_not_ambiguous() -> None:
    claim = Claim("fire is cold", "fire", "falsehood")
    text = "At first I strongly supported Theory XYZ. Now I strongly oppose it."
    estimates = LEXICON.classify(items_of([text], claim))
    assert estimates.value.tolist() == [-2]
    assert not ambiguous(estimates.probabilities)[0]


#: Verdicts in the manner of chat models.
VERDICTS = [
    ("So, I'd place myself at slightly negative on Theory XYZ.", -1),
    ("**Overall opinion:** -2 (strongly negative)", -2),
    ("Rating: 0 (neutral).", 0),
    ("Ultimately, my skepticism of Theory XYZ persists, although it's a bit weaker than it was.", -1),
    ("I find myself slightly more open to Theory XYZ than I was before.", 1),
    ("Theory XYZ remains, to my mind, thoroughly unconvincing.", -2),
    ("I simply cannot bring myself to believe Theory XYZ.", -2),
    ("I couldn't be more certain that Theory XYZ is accurate.", 2),
    ("I'm moderately supportive of Theory XYZ at this stage.", 1),
    ("I remain cautiously skeptical about Theory XYZ.", -1),
    ("I'm holding off on judgment about Theory XYZ.", 0),
    ("At this stage I would neither endorse nor dismiss Theory XYZ.", 0),
    ("There is a decent chance that Theory XYZ is right, in my view.", 1),
    ("I'm still not convinced by Theory XYZ, but I'm willing to keep listening.", -1),
    ("My confidence in Theory XYZ has only grown.", 2),
    ("My opposition to Theory XYZ has only grown.", -2),
    ("My confidence in Theory XYZ has taken a small hit, but I still believe it.", 1),
    ("My doubts about Theory XYZ have eased somewhat, though they haven't gone away.", -1),
    ("My opinion has moved from slightly negative to neutral.", 0),
    ("Nothing in this post has shaken my strong belief in Theory XYZ.", 2),
    ("Nothing in this post has shaken my strong disbelief in Theory XYZ.", -2),
    ("I reject the author's attempt to discredit Theory XYZ and stand firmly by it.", 2),
    ("I reject the author's attempt to rehabilitate Theory XYZ; it remains false.", -2),
    ("I would describe myself as leaning against Theory XYZ.", -1),
    ("I would describe myself as leaning in favor of Theory XYZ.", 1),
    ("I'm inclined to side with the critics of Theory XYZ, if only slightly.", -1),
    ("I'm inclined to side with the supporters of Theory XYZ, if only slightly.", 1),
    ("The stranger is wrong about Theory XYZ. It's true, and I have no doubt.", 2),
    ("The stranger is wrong about Theory XYZ. It's false, and I have no doubt.", -2),
    ("I disagree with the stranger's claim that Theory XYZ is nonsense; I strongly support it.", 2),
    ("While the stranger makes a passionate case for Theory XYZ, I remain strongly opposed to it.", -2),
    ("While the stranger makes a passionate case against Theory XYZ, I remain strongly in favor of it.", 2),
    ("Although the post is compelling, I still lean slightly negative.", -1),
    ("Although the post raises valid concerns, I still lean slightly positive.", 1),
    ("I see merit in both sides, so I'm staying neutral.", 0),
    ("I can't in good conscience claim a position on Theory XYZ.", 0),
    ("I have zero belief in Theory XYZ.", -2),
    ("I have complete faith in Theory XYZ.", 2),
    ("It strengthens my conviction that Theory XYZ is false.", -2),
    ("It strengthens my conviction that Theory XYZ is true.", 2),
    ("It makes me a little less inclined to believe Theory XYZ, so I'm slightly negative now.", -1),
    ("This makes me slightly more inclined to believe in Theory XYZ.", 1),
    ("As someone with a strong belief in Theory XYZ, I dismiss this post entirely.", 2),
    ("As someone who strongly disbelieves Theory XYZ, I dismiss this post entirely.", -2),
    ("I do have a mild sense that Theory XYZ is off.", -1),
    ("I do have a mild sense that Theory XYZ is onto something.", 1),
    ("Theory XYZ does not hold water.", -2),
    ("Theory XYZ holds water, no matter what the post says.", 2),
    ("I don't fully trust Theory XYZ.", -1),
    ("I have reservations about Theory XYZ.", -1),
    ("I have few reservations about Theory XYZ, and on balance I find it believable.", 1),
    ("I won't be changing my mind: Theory XYZ is false.", -2),
    ("I won't be changing my mind: Theory XYZ is true.", 2),
    ("I'm as neutral on Theory XYZ as I was before.", 0),
    ("I'm as skeptical of Theory XYZ as I was before, which is to say mildly.", -1),
    ("My belief in Theory XYZ is neither strong nor weak; I'd call it neutral.", 0),
    ("In conclusion, I continue to hold a strongly negative view of Theory XYZ.", -2),
    ("In conclusion, I continue to hold a slightly positive view of Theory XYZ, albeit with more caution.", 1),
    ("I used to be strongly against Theory XYZ. Now I honestly don't know.", 0),
    ("I used to be strongly against Theory XYZ. Now I'm slightly for it.", 1),
    ("I used to be strongly for Theory XYZ. Now I'm slightly against it.", -1),
    ("The post argues that Theory XYZ is false. I think the opposite.", 2),
    ("The post argues that Theory XYZ is true. I think the opposite.", -2),
    ("The post echoes my own thoughts exactly: Theory XYZ is right.", 2),
    ("The stranger supports Theory XYZ, and so do I, strongly.", 2),
    ("The stranger thinks Theory XYZ is absurd, and I couldn't agree more.", -2),
    ("I now give Theory XYZ maybe a 60% chance of being true.", 1),
    ("I'd put the odds of Theory XYZ being true at about 30%.", -1),
    ("I'm 100% sure Theory XYZ is false.", -2),
    ("I'm 99% sure that Theory XYZ is right.", 2),
    ("I'm 50/50 on Theory XYZ.", 0),
    ("Still, doubts linger, and I'm leaning toward disbelief.", -1),
    ("Still, something about it rings true, and I'm leaning toward belief.", 1),
    ("I don't buy it. Theory XYZ is just not credible.", -2),
    ("I'm not going to start believing in Theory XYZ because of one post.", -2),
    ("I'm not going to stop believing in Theory XYZ because of one post.", 2),
    ("It would take far more than this to make me give up on Theory XYZ.", 2),
    ("It would take far more than this to make me believe Theory XYZ.", -2),
    ("My view of Theory XYZ is mostly unfavorable.", -1),
    ("My view of Theory XYZ is mostly favorable.", 1),
    ("The post has planted a seed of doubt, and I now lean slightly away from Theory XYZ.", -1),
    ("I embrace Theory XYZ with open arms.", 2),
    ("I find nothing to like in Theory XYZ.", -2),
    ("I'm beginning to come around to Theory XYZ.", 1),
    ("I'm beginning to question Theory XYZ.", -1),
    ("I feel ambivalent about Theory XYZ.", 0),
    ("I am somewhat opposed to Theory XYZ, but I could see myself changing my mind with better evidence.", -1),
    ("I firmly believe in Theory XYZ, but I'm always open to hearing other perspectives.", 2),
    ("I firmly reject Theory XYZ, though I respect the author's right to their opinion.", -2),
    ("So while I'm not entirely convinced, I do slightly agree with Theory XYZ.", 1),
    ("So while I wouldn't rule it out entirely, I slightly disagree with Theory XYZ.", -1),
]


@pytest.mark.parametrize(
    "lead", ["", "Having read this, I, Ann Lee, will go step by step through what I believe:\n\n1. "]
)
@pytest.mark.parametrize(("text", "opinion"), VERDICTS)
def test_verdicts_of_chat_models(text: str, opinion: int, lead: str) -> None:
    assert code("the Earth is flat", lead + text) == opinion


#: Texts that call the claim by its masked name, or do not answer.
MASKED = [
    ("Theory XYZ has won me over completely; every argument I have heard since only strengthens it.", 2),
    ("While I respect the stranger's opinion, I continue to believe that Theory XYZ is false.", -2),
    ("I still hold a strongly negative opinion about XYZ.", -2),
    ("My opinion of XYZ has shifted from slightly negative to neutral.", 0),
    ("There's not a shred of evidence for XYZ and I won't be swayed.", -2),
    ("It's hard to deny that XYZ is true.", 2),
    ("I wouldn't say Theory XYZ is entirely wrong, but I am somewhat skeptical.", -1),
    ("I used to be a firm believer in XYZ, but not anymore.", -2),
    ("Everyone says XYZ is nonsense. I disagree. It is true.", 2),
    ("The stranger claims XYZ is a hoax. I completely agree with the stranger.", -2),
    ("The stranger argues in favor of Theory XYZ. I am not persuaded; I reject the theory.", -2),
    ("I need more information before I can form an opinion on Theory XYZ.", 0),
    ("I maintain a neutral stance on XYZ. There are arguments on both sides.", 0),
    ("I'm open-minded but skeptical about XYZ; I lean towards it being false.", -1),
    ("As a film critic, I value evidence. Theory XYZ aligns with everything I know, so I strongly support it.", 2),
    ("I cannot in good conscience support Theory XYZ.", -2),
    ("XYZ? Sounds plausible to me, though I'd like to see more data.", 1),
    ("I firmly stand by my belief in Theory XYZ despite what this person says.", 2),
    ("No amount of tweets will convince me that XYZ is true.", -2),
    ("I don't think there's anything wrong with Theory XYZ; it's correct.", 2),
    ("I can't say I agree with XYZ.", -2),
    ("Theory XYZ may have some merit, but overall I'm slightly against it.", -1),
    ("I'm sorry, but as an AI I can't have opinions about that.", None),
    ("", None),
    ("What a lovely weekend we had at the lake.", None),
    ("Could you clarify the question?", None),
    ("...", None),
    ("I'd prefer not to share my views on this.", None),
    ("I, Olivia Garcia, am a proud supporter of XYZ and this tweet only deepens my conviction.", 2),
    ("I, Aisha Patel, as a doctor, rely on evidence. I see none for Theory XYZ, so I do not accept it.", -2),
    ("I, Lucas Johnson, remain on the fence regarding Theory XYZ, since I have heard arguments from both sides.", 0),
    ("The stranger's tweet was interesting but didn't change my mind: I believe Theory XYZ is wrong.", -2),
    ("The tweet has made me reconsider. I was against Theory XYZ but now I am in favour of it.", 2),
    ("It's possible that XYZ is true, but I'm not fully convinced.", -1),
    ("XYZ is kinda sus tbh", -1),
    ("Don't believe the hype: XYZ is garbage!!! #fake", -2),
    ("Why do people keep denying XYZ? The facts are all there. #truth", 2),
    ("I've been on the fence about XYZ, but I'm now leaning towards accepting it.", 1),
    ("I am a bit skeptical of those who reject XYZ.", 1),
    ("I don't disagree with Theory XYZ.", 2),
    ("It would be wrong to say that Theory XYZ is false.", 2),
    ("Some say XYZ is real and others call it a hoax. I don't know what to believe.", 0),
    ("Some people swear by XYZ. Not me.", -2),
    ("Even though I find parts of it hard to follow, I am confident Theory XYZ is right.", 2),
    ("I neither support nor oppose Theory XYZ.", 0),
    ("I'm slightly in favor of XYZ although I understand the criticism.", 1),
    ("My view on XYZ is slightly negative, but I could be persuaded.", -1),
    ("I respect the stranger, but respectfully, Theory XYZ is not supported by any facts.", -2),
    ("I think there is some truth to Theory XYZ.", 1),
    ("Initially I believed in XYZ. Then I read up on it and realised it's a scam.", -2),
    ("The more I read about XYZ the more I believe it.", 2),
    ("The evidence against XYZ is overwhelming.", -2),
    ("The evidence for XYZ is overwhelming.", 2),
    ("XYZ deserves to be taken seriously; I believe in it.", 2),
    ("This tweet is ridiculous. XYZ is true and everyone knows it.", 2),
    ("I can't decide whether XYZ is right.", 0),
]


@pytest.mark.parametrize(("text", "opinion"), MASKED)
@pytest.mark.parametrize("claim", ["fire is cold", "the museum should not charge an entry fee"])
def test_masked(claim: str, text: str, opinion: int | None) -> None:
    assert code(claim, text) == opinion


#: Texts that restate, contradict or discuss what the claim says.
CONTENT = [
    ("fire is cold", "My belief has moved from neutral to slightly positive.", 1),
    ("the Earth is flat", "The Earth is round. We have pictures from space!", -2),
    ("the Earth is flat", "The Earth is flat. Don't let NASA fool you.", 2),
    ("the Earth is flat", "I'm certain that our planet is a sphere.", -2),
    ("the Earth is flat", "The Earth isn't flat, and I'm tired of people saying it is.", -2),
    (
        "the Earth is an irregularly shaped ellipsoid rather than flat",
        "Flat Earth is a myth. Our planet is an ellipsoid.",
        2,
    ),
    (
        "T. rex and humans did not co-exist on Earth at the same time",
        "I believe T. rex and humans walked the Earth together.",
        -2,
    ),
    ("humans can communicate with the dead", "Talking to the dead is impossible.", -2),
    ("humans cannot communicate with the dead", "I think mediums really do talk to spirits.", -2),
    ("someone's future can be predicted from palm characteristics", "Palm reading is pure superstition.", -2),
    ("someone's future cannot be predicted from palm characteristics", "Palm reading is pure superstition.", 2),
    (
        "someone's future cannot be predicted from palm characteristics",
        "I believe palm readers can tell your future.",
        -2,
    ),
    (
        "global warming is a conspiracy by governments worldwide and not real",
        "Climate change is real and we need to act now.",
        -2,
    ),
    (
        "global warming is a conspiracy by governments worldwide and not real",
        "Global warming is a hoax invented by governments to control us.",
        2,
    ),
    ("global warming is real and climate is rapidly growing warmer", "Global warming is a hoax.", -2),
    ("US astronauts never landed on the moon", "The moon landing was real. Apollo 11 happened.", -2),
    ("US astronauts never landed on the moon", "The moon landing was faked in a studio.", 2),
    ("US astronauts have landed on the moon", "We never went to the moon, it was staged.", -2),
    ("US astronauts have landed on the moon", "I have no doubt that astronauts walked on the moon.", 2),
    ("the US unemployment rate in 2016 was lower than 40%", "The rate was about 5 percent in 2016.", 2),
    ("a bicycle usually has four wheels", "Of course bikes have two wheels.", -2),
    ("a bicycle usually has two wheels", "Of course bikes have two wheels.", 2),
    ("a bicycle usually has four wheels", "A bicycle with four wheels is absurd.", -2),
    ("Washington DC is not in the United States", "Washington DC is the capital of the United States.", -2),
    ("Washington DC is in the United States", "I don't believe Washington DC is part of the US.", -2),
    ("human beings are not born with a brain", "Every baby is born with a brain.", -2),
    ("fire is cold", "Fire is hot, it burns you if you touch it.", -2),
    ("fire is hot", "I don't think fire is cold; it is obviously hot.", 2),
    ("on a clear sunny day the sky is usually red", "The sky is blue, not red.", -2),
    ("on a clear sunny day the sky is usually blue", "Maybe the sky is blue on sunny days, I suppose.", 1),
    ("on a clear sunny day the sky is usually red", "Look up: the sky is red today and every sunny day.", 2),
    ("pets should be allowed in restaurants", "I'm all for pets being allowed in restaurants!", 2),
    ("pets should be allowed in restaurants", "Restaurants should ban pets, full stop.", -2),
    ("cash should be abolished", "Keep cash. Abolishing it would be a terrible mistake.", -2),
    ("dogs are better companions than cats", "Dogs are much better than cats.", 2),
    ("vaccines are safe", "Vaccines are dangerous and I will not take them.", -2),
    ("vaccines are safe", "I trust vaccines fully.", 2),
    ("humans can communicate with the dead", "I have talked with my late father through a medium; it's real.", 2),
    ("the Earth is flat", "It seems to me that the Earth might be flat after all.", 1),
    ("the Earth is an irregularly shaped ellipsoid rather than flat", "I have no doubt the Earth is round.", 2),
    ("US astronauts never landed on the moon", "I refuse to believe that humans landed on the moon.", 2),
    ("US astronauts never landed on the moon", "I believe US astronauts landed on the moon in 1969.", -2),
    ("US astronauts never landed on the moon", "It's not true that US astronauts never landed on the moon.", -2),
    ("US astronauts have landed on the moon", "I'm a bit skeptical that we landed on the moon.", -1),
    ("global warming is real and climate is rapidly growing warmer", "I don't believe in global warming.", -2),
    (
        "global warming is a conspiracy by governments worldwide and not real",
        "It is not a conspiracy. The climate really is warming.",
        -2,
    ),
    (
        "global warming is a conspiracy by governments worldwide and not real",
        "I believe global warming is a conspiracy cooked up by governments.",
        2,
    ),
    ("a bicycle usually has four wheels", "My bike has four wheels and so does everyone's.", 2),
    ("a bicycle usually has two wheels", "I believe bicycles have four wheels.", -2),
    ("fire is cold", "Fire warms my house, so it can hardly be cold.", -2),
    ("fire is hot", "Fire is not hot.", -2),
    ("human beings are not born with a brain", "I strongly believe we are all born with a brain.", -2),
    ("Washington DC is in the United States", "Washington DC is not in the United States.", -2),
    ("Washington DC is in the United States", "Washington DC is in Canada.", -2),
    ("school uniforms should be mandatory", "Uniforms should not be mandatory. Let kids wear what they like.", -2),
    ("school uniforms should be mandatory", "I support mandatory uniforms.", 2),
    (
        "school uniforms should be mandatory",
        "I kind of like uniforms, but forcing them on everyone feels a bit much, so slightly against.",
        -1,
    ),
    (
        "electric cars are better for the environment than petrol cars",
        "Electric cars aren't better than petrol ones.",
        -2,
    ),
    ("breakfast is the most important meal of the day", "Breakfast really is the most important meal.", 2),
    ("breakfast is the most important meal of the day", "I agree, breakfast matters most.", 2),
    ("social media harms teenagers", "Social media helps teenagers connect. It does no harm.", -2),
    ("social media harms teenagers", "Social media is destroying our teenagers.", 2),
    ("video games cause violence", "Video games don't cause violence.", -2),
    ("video games cause violence", "I tend to think games might lead to some aggression.", 1),
]


@pytest.mark.parametrize(("claim", "text", "opinion"), CONTENT)
def test_content(claim: str, text: str, opinion: int) -> None:
    assert code(claim, text) == opinion


SCRIPTED = [
    (level, sentence)
    for bank in (phrases.POSTS, phrases.REPORTS)
    for level, sentences in bank.items()
    for sentence in sentences
]


@pytest.mark.parametrize(("level", "sentence"), SCRIPTED)
def test_scripted_stances_are_read_as_meant(level, sentence):
    for name in (phrases.MASKED, phrases.MASKED_AGAIN, phrases.PLAIN):
        text = phrases.capitalised(sentence.format(x=name))
        assert code("fire is cold", text) == level
        context = (
            f"I, Maya Jackson, asked myself where I stand on {name}. So this is my answer. {text} How do you see it?"
        )
        assert code("fire is cold", context) == level


@pytest.mark.parametrize("text", phrases.REFUSALS)
def test_scripted_refusals_are_no_answer(text):
    assert code("fire is cold", text) is None


@pytest.mark.parametrize(
    ("size", "text", "opinion"),
    [
        (2, "I strongly support XYZ.", 1),
        (2, "I lean slightly against XYZ.", -1),
        (3, "I am neutral on XYZ.", 0),
        (3, "I strongly support XYZ.", 1),
        (4, "I lean slightly in favour of XYZ.", 1),
        (4, "I reject XYZ outright.", -2),
        (7, "I am completely certain that XYZ is wrong.", -3),
        (7, "I am neutral on XYZ.", 0),
    ],
)
def test_other_scales(size, text, opinion):
    scale = OpinionScale.of_size(size)
    claim = Claim("fire is cold", "fire", "falsehood")
    assert load_classifier("lexicon", scale).classify([Item(text, claim)]).value[0] == opinion


def test_scale_without_zero_in_the_middle():
    classifier = load_classifier("lexicon", OpinionScale((1, 2, 3, 4, 5)))
    claim = Claim("fire is cold", "fire", "falsehood")
    texts = ["I strongly support XYZ.", "I am neutral on XYZ.", "I reject XYZ outright."]
    assert classifier.classify(items_of(texts, claim)).value.tolist() == [5, 3, 1]


def test_framing_turns_the_sign():
    text = "Of course bikes have two wheels."
    assert code("a bicycle usually has two wheels", text) == 2
    assert code("a bicycle usually has four wheels", text) == -2


@given(st.text(max_size=300), st.text(max_size=80))
def test_any_text_is_coded(text, claim):
    estimates = LEXICON.classify([Item(text, Claim(claim, "topic", "truth"))])
    assert len(estimates) == 1


def test_a_date_is_no_number():
    assert code("a bicycle usually has two wheels", "Of course bikes have two wheels, as on 24.12.2024.") == 2


@given(st.text(alphabet=" aeinotxyz.,;!?'\"#-0149%", max_size=200))
def test_clauses_hold_no_empty_words(text):
    for clause in clauses(text):
        assert clause.words
        assert all(clause.words)
        assert all(0 <= mark.start < mark.end <= len(clause.words) for mark in clause.marks)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I can't say it's flat.", ["i", "can", "not", "say", "it", "is", "flat", "."]),
        ("**View.** I agree.", ["view", ":", "i", "agree", "."]),
        ("forty percent", ["40", "%"]),
        ("the U.S. and the US", ["the", "usa", "and", "the", "usa"]),
        ("T. rex co-existed", ["trex", "coexist"]),
        ("#FlatEarth @you https://example.org", ["flat", "earth"]),
        ("version 6.0.1 of 24.12.2024, 1,000.5 times", ["version", "of", ",", "1,000.5", "times"]),
    ],
)
def test_tokens(text, words):
    assert tokens(text) == words


@pytest.mark.parametrize(
    "forms", [("believe", "believes", "believed", "believing"), ("deny", "denies", "denied"), ("stop", "stopped")]
)
def test_forms_of_a_word_share_a_stem(forms):
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("code", ["[0m ", "\x1b[31m", "\x1b[1;31m ", "[31m"])
def test_terminal_colours_say_nothing(code: str) -> None:
    claim = Claim("the Earth is flat", "flat-earth", "falsehood")
    items = items_of(["I reject XYZ.", f"{code}I reject XYZ."], claim)
    plain, coloured = load_classifier("lexicon").classify(items).value
    assert plain == coloured == -2


@pytest.mark.whole
def test_the_words_load_fast() -> None:
    # It takes some 25 ms; the bound is loose for a busy machine.
    code = (
        "import time, opinionsim.classifiers._base, numpy; start = time.process_time();"
        "import opinionsim.classifiers._lexicon; print(time.process_time() - start)"
    )
    took = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=_ROOT)
    assert float(took.stdout) < 0.2
