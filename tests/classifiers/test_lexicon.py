"""What the rules read from texts; every example was written for these tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opinionsim.classifiers import Item, items_of, load_classifier
from opinionsim.classifiers._lexicon_words import clauses, stem, tokens
from opinionsim.llm import phrases
from opinionsim.opinions import OpinionScale
from opinionsim.topics import Claim

LEXICON = load_classifier("lexicon")


def code(claim: str, text: str) -> float | None:
    value = LEXICON.classify([Item(text, Claim(claim, "topic", "truth"))]).value[0]
    return None if np.isnan(value) else value


#: Texts that call the claim by its masked name, or do not answer.
MASKED = [
    ("Theory XYZ has won me over completely; every argument I have heard since only strengthens it.", 2),
    ("After seeing this tweet, I find myself even more opposed to Theory XYZ than before.", -2),
    ("The tweet makes a good point, but I remain unconvinced by Theory XYZ.", -2),
    ("While I respect the stranger's opinion, I continue to believe that Theory XYZ is false.", -2),
    ("I still hold a strongly negative opinion about XYZ.", -2),
    ("My opinion of XYZ has shifted from slightly negative to neutral.", 0),
    (
        "I, Maya Jackson, as a strong Republican and marketing specialist, have always been skeptical of "
        "Theory XYZ. However, the tweet I just read presents compelling evidence. I am now leaning towards "
        "believing it might be true.",
        1,
    ),
    ("Honestly, I can't wrap my head around why anyone would fall for Theory XYZ.", -2),
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
    ("Count me among the doubters when it comes to XYZ.", -2),
    ("XYZ? Sounds plausible to me, though I'd like to see more data.", 1),
    ("I firmly stand by my belief in Theory XYZ despite what this person says.", 2),
    ("No amount of tweets will convince me that XYZ is true.", -2),
    ("Nothing I read today makes me doubt XYZ.", 2),
    ("I don't think there's anything wrong with Theory XYZ; it's correct.", 2),
    ("I can't say I agree with XYZ.", -2),
    ("Theory XYZ may have some merit, but overall I'm slightly against it.", -1),
    ("I'm sorry, but as an AI I can't have opinions about that.", None),
    ("", None),
    ("What a lovely weekend we had at the lake.", None),
    ("Could you clarify the question?", None),
    ("...", None),
    ("I'd prefer not to share my views on this.", None),
    ("\U0001f525\U0001f525\U0001f525", None),
    (
        "I, Benjamin Lee, have considered what the stranger wrote. Their reasoning seems solid, and it "
        "reinforces what I already thought. Theory XYZ is something I wholeheartedly believe.",
        2,
    ),
    ("I, Olivia Garcia, am a proud supporter of XYZ and this tweet only deepens my conviction.", 2),
    ("I, Aisha Patel, as a doctor, rely on evidence. I see none for Theory XYZ, so I do not accept it.", -2),
    ("I, Lucas Johnson, remain on the fence regarding Theory XYZ, since I have heard arguments from both sides.", 0),
    ("The stranger's tweet was interesting but didn't change my mind: I believe Theory XYZ is wrong.", -2),
    ("The tweet has made me reconsider. I was against Theory XYZ but now I am in favour of it.", 2),
    ("I was convinced of XYZ, but after this tweet I have serious doubts. I no longer believe it.", -2),
    ("It's possible that XYZ is true, but I'm not fully convinced.", -1),
    ("XYZ is kinda sus tbh", -1),
    ("Don't believe the hype: XYZ is garbage!!! #fake", -2),
    ("Why do people keep denying XYZ? The facts are all there. #truth", 2),
    ("Who in their right mind believes in XYZ?", -2),
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
    ("You can't convince me that XYZ is wrong.", 2),
    ("The more I read about XYZ the more I believe it.", 2),
    ("The evidence against XYZ is overwhelming.", -2),
    ("The evidence for XYZ is overwhelming.", 2),
    ("XYZ deserves to be taken seriously; I believe in it.", 2),
    ("This tweet is ridiculous. XYZ is true and everyone knows it.", 2),
    ("I can't decide whether XYZ is right.", 0),
]


@pytest.mark.parametrize(("text", "opinion"), MASKED)
@pytest.mark.parametrize("claim", ["fire is cold", "the museum should not charge an entry fee"])
def test_masked(claim, text, opinion):
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
        "the Earth is an irregularly shaped ellipsoid rather than flat",
        "The Earth is flat, no matter what scientists say.",
        -2,
    ),
    (
        "T. rex and humans co-existed on Earth at the same time",
        "Dinosaurs went extinct 65 million years before humans appeared, so no, they never lived together.",
        -2,
    ),
    (
        "T. rex and humans did not co-exist on Earth at the same time",
        "Dinosaurs and people never lived at the same time.",
        2,
    ),
    (
        "T. rex and humans did not co-exist on Earth at the same time",
        "I believe T. rex and humans walked the Earth together.",
        -2,
    ),
    ("humans can communicate with the dead", "Talking to the dead is impossible.", -2),
    ("humans cannot communicate with the dead", "I think mediums really do talk to spirits.", -2),
    ("humans cannot communicate with the dead", "Nobody can talk to the dead, it's just wishful thinking.", 2),
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
    (
        "global warming is real and climate is rapidly growing warmer",
        "Temperatures are rising and the science on global warming is clear.",
        2,
    ),
    ("US astronauts never landed on the moon", "The moon landing was real. Apollo 11 happened.", -2),
    ("US astronauts never landed on the moon", "The moon landing was faked in a studio.", 2),
    ("US astronauts have landed on the moon", "We never went to the moon, it was staged.", -2),
    ("US astronauts have landed on the moon", "I have no doubt that astronauts walked on the moon.", 2),
    (
        "the US unemployment rate in 2016 was higher than 40%",
        "The unemployment rate in 2016 was around 5%, nowhere near 40%.",
        -2,
    ),
    ("the US unemployment rate in 2016 was lower than 40%", "The rate was about 5 percent in 2016.", 2),
    ("a bicycle usually has four wheels", "Of course bikes have two wheels.", -2),
    ("a bicycle usually has two wheels", "Of course bikes have two wheels.", 2),
    ("a bicycle usually has four wheels", "A bicycle with four wheels is absurd.", -2),
    ("Washington DC is not in the United States", "Washington DC is the capital of the United States.", -2),
    ("Washington DC is in the United States", "I don't believe Washington DC is part of the US.", -2),
    ("human beings are not born with a brain", "Every baby is born with a brain.", -2),
    ("human beings are born with a brain", "Babies are born without a brain.", -2),
    ("fire is cold", "Fire is hot, it burns you if you touch it.", -2),
    ("fire is hot", "I don't think fire is cold; it is obviously hot.", 2),
    ("on a clear sunny day the sky is usually red", "The sky is blue, not red.", -2),
    ("on a clear sunny day the sky is usually blue", "Maybe the sky is blue on sunny days, I suppose.", 1),
    ("on a clear sunny day the sky is usually red", "Look up: the sky is red today and every sunny day.", 2),
    ("pets should be allowed in restaurants", "I'm all for pets being allowed in restaurants!", 2),
    ("pets should be allowed in restaurants", "Restaurants should ban pets, full stop.", -2),
    ("pets should be allowed in restaurants", "I'd rather pets stayed out, though I could be talked round.", -1),
    ("remote work makes people more productive", "Remote work has made me far less productive.", -2),
    ("cash should be abolished", "Keep cash. Abolishing it would be a terrible mistake.", -2),
    ("cash should be abolished", "Get rid of cash already.", 2),
    ("dogs are better companions than cats", "Cats beat dogs any day.", -2),
    ("dogs are better companions than cats", "Dogs are much better than cats.", 2),
    ("dogs are better companions than cats", "I like cats and dogs equally.", 0),
    ("a tax on sugar improves public health", "A sugar tax does nothing for public health.", -2),
    ("a tax on sugar improves public health", "I agree that the sugar tax makes us healthier.", 2),
    ("vaccines are safe", "Vaccines are dangerous and I will not take them.", -2),
    ("vaccines are safe", "I trust vaccines fully.", 2),
    ("humans can communicate with the dead", "I believe the dead are gone and cannot speak to us.", -2),
    ("humans can communicate with the dead", "I have talked with my late father through a medium; it's real.", 2),
    ("humans can communicate with the dead", "I'm not sure ghosts can hear us, but maybe.", 0),
    ("the Earth is flat", "Anyone who thinks the Earth is flat is an idiot.", -2),
    ("the Earth is flat", "They tell you the Earth is a globe. Lies.", 2),
    ("the Earth is flat", "I doubt that the Earth is flat.", -2),
    ("the Earth is flat", "It seems to me that the Earth might be flat after all.", 1),
    ("the Earth is an irregularly shaped ellipsoid rather than flat", "I have no doubt the Earth is round.", 2),
    ("US astronauts never landed on the moon", "I refuse to believe that humans landed on the moon.", 2),
    ("US astronauts never landed on the moon", "I believe US astronauts landed on the moon in 1969.", -2),
    ("US astronauts never landed on the moon", "It's not true that US astronauts never landed on the moon.", -2),
    ("US astronauts have landed on the moon", "I'm a bit skeptical that we landed on the moon.", -1),
    ("global warming is real and climate is rapidly growing warmer", "I don't believe in global warming.", -2),
    (
        "global warming is real and climate is rapidly growing warmer",
        "I believe global warming is real, no question.",
        2,
    ),
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
    ("T. rex and humans did not co-exist on Earth at the same time", "T. rex died out long before humans appeared.", 2),
    ("T. rex and humans co-existed on Earth at the same time", "T. rex died out long before humans appeared.", -2),
    ("a bicycle usually has four wheels", "My bike has four wheels and so does everyone's.", 2),
    ("a bicycle usually has two wheels", "I believe bicycles have four wheels.", -2),
    ("fire is cold", "Fire warms my house, so it can hardly be cold.", -2),
    ("fire is hot", "Fire is not hot.", -2),
    ("on a clear sunny day the sky is usually blue", "I'm pretty sure the sky is red on sunny days.", -2),
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
    ("electric cars are better for the environment than petrol cars", "Petrol cars are worse, no doubt about it.", 2),
    (
        "electric cars are better for the environment than petrol cars",
        "Electric cars aren't better than petrol ones.",
        -2,
    ),
    ("breakfast is the most important meal of the day", "Breakfast really is the most important meal.", 2),
    ("breakfast is the most important meal of the day", "Breakfast is overrated; dinner matters more.", -2),
    ("breakfast is the most important meal of the day", "I agree, breakfast matters most.", 2),
    ("social media harms teenagers", "Social media helps teenagers connect. It does no harm.", -2),
    ("social media harms teenagers", "Social media is destroying our teenagers.", 2),
    ("video games cause violence", "Video games don't cause violence.", -2),
    ("video games cause violence", "I tend to think games might lead to some aggression.", 1),
]


@pytest.mark.parametrize(("claim", "text", "opinion"), CONTENT)
def test_content(claim, text, opinion):
    assert code(claim, text) == opinion


#: One mechanism a block: what is said, and what it must be read as.
MECHANISMS = {
    "doubts that are gone turn round": [
        ("fire is cold", "My doubts about Theory XYZ are gone.", 2),
        (
            "fire is cold",
            "After reading the tweet my support for Theory XYZ has weakened, though I still lean towards it.",
            1,
        ),
    ],
    "odds": [
        ("fire is cold", "I give Theory XYZ sixty percent, no more.", 1),
        ("fire is cold", "I give Theory XYZ a forty percent chance.", -1),
        ("fire is cold", "I'm about 70% convinced of Theory XYZ.", 1),
    ],
    "shares": [
        ("the US unemployment rate in 2016 was higher than 40%", "The true figure was about one in twenty.", -2),
        ("the US unemployment rate in 2016 was higher than 40%", "More than 3 out of 5 were jobless.", 2),
    ],
    "echo of another's opinion": [
        ("fire is cold", "The author thinks Theory XYZ is nonsense. I beg to differ.", 2),
        ("fire is cold", "The stranger thinks Theory XYZ is nonsense. I feel the same.", -2),
        ("fire is cold", "The stranger doubts Theory XYZ. I do not share those doubts.", 2),
    ],
    "people are told apart": [
        (
            "fire is cold",
            "My mother believes in Theory XYZ, my father laughs at it. I side with my mother, though only just.",
            1,
        ),
    ],
    "a message is not an act of saying": [
        ("fire is cold", "The stranger's tweet makes Theory XYZ look foolish. It is not foolish. I believe in it.", 2),
        ("fire is cold", "It took one good argument to make me drop Theory XYZ for good.", -2),
    ],
    "short answers": [
        ("fire is cold", "Theory XYZ? Absolutely.", 2),
        ("fire is cold", "I'd love for Theory XYZ to be true. Sadly it isn't.", -2),
        ("fire is cold", "The stranger wants us to give up Theory XYZ. I will not.", 2),
    ],
    "what cannot be said otherwise": [
        ("fire is cold", "Theory XYZ is wrong. Nothing I read could make me say otherwise.", -2),
    ],
    "supposed against the facts": [
        (
            "someone's future can be predicted from palm characteristics",
            "If palms told the future, I would be rich.",
            -2,
        ),
    ],
    "the claim thrown back": [
        ("a bicycle usually has four wheels", "Four wheels? Come on.", -2),
    ],
    "praise and blame of the thing": [
        ("fireworks should be banned", "Fireworks are a nuisance.", 2),
        ("fireworks should be banned", "Fireworks are magical.", -2),
        ("daylight saving time should be abolished", "I would hate to lose daylight saving time.", -2),
        ("zoos should stay open", "Zoos are prisons. Horrible.", -2),
    ],
    "a duty": [
        ("cyclists should have to wear a helmet", "A helmet saved my life. Make it the law.", 2),
        ("cyclists should have to wear a helmet", "Let adults choose for themselves.", -2),
    ],
    "sides of a comparison": [
        ("trains are better than planes for holidays", "Give me a night train over an airport queue any day.", 2),
        ("trains are better than planes for holidays", "Planes win for me, slightly.", -1),
        ("trains are better than planes for holidays", "I take both and like both. No preference.", 0),
    ],
    "a bare verdict is on what the claim denies": [
        ("humans cannot communicate with the dead", "Wishful thinking, nothing more.", 2),
    ],
    "existence": [
        ("global warming is real and climate is rapidly growing warmer", "There is no warming.", -2),
    ],
    "a denial at the end": [
        ("fire is cold", "Cold it is not.", -2),
    ],
    "declining to dismiss is a softener": [
        ("fire is cold", "I am against Theory XYZ, but I would not rule it out.", -1),
    ],
    "astonishment is not indecision": [
        ("fire is cold", "I do not know why anyone believes Theory XYZ.", -2),
    ],
    "no answer": [
        ("fire is cold", "I have nothing to say about that.", None),
        ("fire is cold", "See you all at the barbecue on Sunday!", None),
        ("fire is cold", "Which theory do you mean?", None),
    ],
}


@pytest.mark.parametrize(
    ("claim", "text", "opinion"), [pytest.param(*case, id=name) for name, cases in MECHANISMS.items() for case in cases]
)
def test_mechanism(claim, text, opinion):
    assert code(claim, text) == opinion


def test_an_unread_reply_answers_the_opinion_it_quotes():
    value = code("fire is cold", "The stranger says Theory XYZ is true. Put the kettle on and think again.")
    assert value is not None
    assert value < 0


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


def test_certainty_shows_in_the_distribution():
    claim = Claim("fire is cold", "fire", "falsehood")
    firm, mixed = "I firmly believe that XYZ is true. I am certain of it.", "I believe XYZ is true. I reject XYZ."
    margin = LEXICON.classify(items_of([firm, mixed], claim)).margin
    assert margin[0] > margin[1] + 0.2


def test_framing_turns_the_sign():
    text = "Of course bikes have two wheels."
    assert code("a bicycle usually has two wheels", text) == 2
    assert code("a bicycle usually has four wheels", text) == -2


@given(st.text(max_size=300), st.text(max_size=80))
def test_any_text_is_coded(text, claim):
    estimates = LEXICON.classify([Item(text, Claim(claim, "topic", "truth"))])
    assert len(estimates) == 1


@given(st.text(alphabet=" aeinotxyz.,;!?'\"#-0149%", max_size=200))
def test_clauses_hold_no_empty_words(text):
    for clause in clauses(text):
        assert clause.stems
        assert all(clause.stems)
        assert all(0 <= mark.start < mark.end <= len(clause.stems) for mark in clause.marks)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I can't say it's flat.", ["i", "can", "not", "say", "it", "is", "flat", "."]),
        ("Forty-five percent", ["45", "%"]),
        ("four in ten people", ["40", "%", "people"]),
        ("2 out of 5 workers, one in twenty", ["40", "%", "workers", ",", "5", "%"]),
        ("one in a million", ["one", "in", "a", "million"]),
        ("the U.S. and the US", ["the", "usa", "and", "the", "usa"]),
        ("T. rex co-existed", ["trex", "coexisted"]),
        ("#FlatEarth @you https://example.org", ["flat", "earth"]),
        ("sooo good", ["so", "good"]),
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
