"""The control in which posts are about something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opinionsim.registry import part
from opinionsim.schedules._dyadic import Dyads
from opinionsim.schedules._external import OutsideInteraction
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._turns import External, Turn

#: Posts of strangers about nothing that anybody disputes.
_OFF_TOPIC = (
    "The bakery at the corner opens at seven now. Their rye bread is gone by nine most days.",
    "I repotted my tomatoes this morning and one of them already has a flower on it.",
    "Our train was twelve minutes late today, so I finished the crossword on the platform.",
    "The people next door have painted their garden shed blue. It goes well with the old fence.",
    "I found my grandmother's recipe for plum cake in a book I had not opened for years.",
    "The library has moved its reading room to the second floor, and there are new lamps on the tables.",
    "It took me an hour to fix the bicycle bell, and then it turned out that only a screw was loose.",
    "We counted eleven ducks on the pond on our walk, three more than last week.",
    "My sister has taken up knitting. I am told to expect a scarf, length unknown.",
    "New shoelaces today. The old ones had lasted longer than the first pair of soles.",
    "The cat has decided that the laundry basket is hers. We do the laundry around her.",
    "Somebody left a single glove on the bus, and the driver hung it beside his mirror.",
    "I tried the soup without onions. It is fine. Next time I will put the onions back.",
    "The swimming pool is warmer in the evening, and around eight there is always a lane free.",
    "We moved the sofa to the other wall, and now everybody sits at the window.",
    "Rain until four, then a rainbow over the parking lot. It was gone before I had my phone out.",
    "I have labeled all the jars in the kitchen, and still opened the salt first when I wanted sugar.",
    "The choir starts again on Thursday. We are short of one tenor, as we are every year.",
    "My alarm clock ran ten minutes fast all week. I have never had such calm mornings.",
    "There is a new bench by the river, in the shade, and it does not wobble.",
)


@part("interaction", name="placebo")
class Placebo(OutsideInteraction, Dyads):
    """Control: random dyads in which an off-topic post is read in the place of every post.

    Pairs, turns and what agents write are those of `dyadic` in the same block. The speaker writes its post, which
    nobody reads; the listener reviews one from outside, as a stranger's.
    """

    messages: str | tuple[str, ...] | None = None  # type: ignore[assignment]
    """The off-topic posts, or the path of a file: YAML or JSON with a list under messages, otherwise one a line. Null
    takes some posts of everyday life."""

    @property
    def given(self) -> str | tuple[str, ...]:
        """The posts, or the path of their file."""
        return _OFF_TOPIC if self.messages is None else self.messages

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """A ``write`` and a ``review`` a step; nobody is shown a post twice before it has been shown all of them."""
        # A stream of their own, so that the pairs stay those of dyads.
        rng, posts = setting.stream("placebo"), [External(name) for name in self.externals(setting)]
        left: dict[int, list[External]] = {}
        for turn in super().turns(setting):
            if turn.act == "review":
                if self.order == "sequence":
                    turn = replace(turn, reads=(posts[(turn.step - 1) % len(posts)],))
                else:
                    unread = left.get(turn.agent) or [posts[place] for place in rng.permutation(len(posts))]
                    left[turn.agent] = unread[1:]
                    turn = replace(turn, reads=(unread[0],))
            yield turn
