import opinionsim as osim
from opinionsim.schedules import REVIEW, WRITE, SteppedInteraction, Turn, named


@osim.part("interaction")
class Circle(SteppedInteraction):
    """In each step an agent writes a post, and the one `shift` seats further on reviews it."""

    acts = named(WRITE, REVIEW)
    shift: int = 1
    """How far the reader sits from the author."""

    def turns(self, setting):
        for t in range(self.steps_for(setting.size)):
            yield Turn(2 * t, t + 1, t % setting.size, "write")
            yield Turn(2 * t + 1, t + 1, (t + self.shift) % setting.size, "review", (2 * t,))
