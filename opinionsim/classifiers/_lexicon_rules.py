"""The tables the lexicon classifier reads texts with; the code that applies them is in `_lexicon`.

A table is a text in which entries are parted by ``/`` or a line end. Words are compared by stem, so one form of a
word stands for all; the longest entry that matches wins.
"""

from __future__ import annotations

__all__ = [
    "AUXILIARIES",
    "BARE_NO",
    "CLAIM_WORDS",
    "COMPARING",
    "COPULAS",
    "EXCLUSIVES",
    "IRREGULAR",
    "MOVING",
    "NUMBERS",
    "OPPOSITES",
    "PAST_FORMS",
    "PHRASES",
    "REVERSERS",
    "SHORT_FORMS",
    "SYNONYMS",
    "WEAK_WORDS",
    "Kind",
]

from enum import StrEnum


class Kind(StrEnum):
    """What a word or phrase does in a clause."""

    # An enum hashes by name through Python code; members are looked up a few hundred times a text.
    __hash__ = str.__hash__

    ATTITUDE = "attitude"
    """What a person does to a target: believe (+1), doubt (-1)."""
    VERDICT = "verdict"
    """What is said of a target: true (+1), nonsense (-1)."""
    OPINE = "opine"
    """Opens an opinion without being one: think, say, feel; carries a negation into what follows."""
    UNDECIDED = "undecided"
    """Says that the author takes no side."""
    RESERVE = "reserve"
    """Lack of certainty: softens a stance beside it, alone it takes no side."""
    NEGATION = "negation"
    STRONG = "strong"
    """Intensifier that makes a stance firm."""
    DEGREE = "degree"
    """Intensifier that becomes a hedge under a negation: *not completely*."""
    HEDGE = "hedge"
    CLAIM = "claim"
    """The claim under its masked name or as "the theory"."""
    STRANGER = "stranger"
    """Somebody else, or their message."""
    SAYING = "saying"
    """What somebody else does with an opinion: claim, insist."""
    SELF = "self"
    PRONOUN = "pronoun"
    PAST = "past"
    NOW = "now"
    CHANGED = "changed"
    """The author turned away from an earlier view."""
    CONTRAST = "contrast"
    """What follows outweighs what came before: but."""
    CONCEDE = "concede"
    """What follows is granted to the other side: although."""
    GRANTED = "granted"
    """What came before is granted to the other side: "I'll give them that"."""
    CONDITION = "condition"
    EVEN_IF = "even if"
    REASON = "reason"
    CLOSING = "closing"
    """Opens the author's conclusion: overall."""
    RHETORICAL = "rhetorical"
    """Opens a question that denies what it asks."""
    REFUSAL = "refusal"
    ROLE_BREAK = "role break"
    LINK = "link"
    """Opens a complement: that, to, whether."""


#: (kind, value, entries). Value is a sign where the kind has one; its size is how firm the bare word is.
PHRASES: list[tuple[Kind, float, str]] = [
    (
        Kind.ATTITUDE,
        0.9,
        """
        believe / believe in / believer / trust / accept / support / supporter / supportive / endorse / embrace
        buy / buy into / agree / agree with / convinced / convince me / convinced of / persuaded / persuade me
        certain / sure / confident / in favour of / in favor of / in favour / in favor / on board
        on board with / sold on / stand by / stand behind / stick by / stick with / side with / subscribe to
        swear by / defend / vouch for / fan of / keen on / prefer / pro / faith in / think so / say so
        go along with / get behind / won over / win me over / come around to / come round to / came around to
        came round to / come to believe / sign up to / rally behind / a yes from me / yes from me
        small yes from me / a small yes from me / small yes / mild yes / cautious yes / vote yes / thumb up
        count me in / all for / all in on / i am for / am for / be for / warm to / warm towards / approve
        approve of / applaud / champion / advocate / i like / really like / i love / love the idea
        like the idea / share that view / share this view / share his view / share her view / share their view
        share the view / hold that view / i know that / i know it / i know this / no doubt about it
        no doubt about that / no doubt about this / we all know / everyone know / know for a fact
        take it as given / bet on / put my money on / right behind / vote for / hold true / have no problem with
        see the appeal of / see merit in / find merit in / concur / affirm / admire / value / welcome
        drawn to / recommend / hold to / hold on to / cling to / on the side of / on its side
        one of the believer / positive towards / positive about / positive on / favourable / favorable / towards
        toward / in the direction of / lean towards / lean toward / tilt towards / tilt toward / agreement
        in agreement / belief in / confidence in / support for / trust in / firmly behind / fully behind
        completely behind / 100 % behind / stand firmly behind / me too / so do i / same here / neither do i
        me neither / nor do i / could not agree more / fall for / fell for / a convert / complete convert
        am warm / be warm about / warm about / taken with / persuade / come down for / believe every word
        swayed towards / leaning yes / lean yes / say yes / i do too / give it credence / give credence to
        put stock in / put faith in / put much stock in / rely on / bank on / tick yes / nod along / nod
        my answer is yes / the answer is yes / yes to / side of / fall on the side of
        """,
    ),
    (
        Kind.ATTITUDE,
        -0.9,
        """
        opposition to / doubt about / not me / pretend / stop pretending / keep pretending
        could not disagree more / not for / small no / mild no / reject / dismiss / deny / disagree
        disagree with / disbelieve / oppose / opposed to / distrust / mistrust / against / unconvinced
        refuse to believe / refuse to accept / refuse to buy / dispute / laugh at / laugh off / scoff / scoff at
        roll my eyes / hard to believe / hard to accept / hard to swallow / hard to buy
        hard to take seriously / struggle to believe / find it hard to believe / find it hard to accept
        object to / rule out / set against / come out against / waver / shaken / shake / reject outright
        rubbish this / away from / no fan of / stop believing / give up on / lose faith in / lost faith in
        turn my back on / a no from me / no from me / vote no / thumb down / count me out / walk away from
        part way with / part company with / fed up with / detest / hate / dislike / resist / push back on
        push back against / argue against / want nothing to do with / have no time for / no time for
        have nothing to do with / disapprove / condemn / denounce / vote against / talk me out of
        take issue with / snort / can it be / disbeliever / denier / contrary to / unbeliever / put off by
        throw out / poke hole in / repudiate / draw the line / beg to differ
        my answer is no / the answer is no / no to / not having it / turn down / abandon / disagreement
        in disagreement / leaning no / lean no / lean slightly no / leaning slightly no / lean against
        tilt against / on the side of no / the side of no / say no / would say no / leaning against
        not having any of it / side eye / trusting it less / less trusting / mock / drop the idea
        have let go of / let go of / turn me off / turn me against / turn against / sour on
        decline to believe
        """,
    ),
    (
        Kind.ATTITUDE,
        -0.8,
        """
        doubt / skeptical / sceptical / skeptic / sceptic / doubter / skepticism / scepticism / doubtful
        suspicious of / wary of / wary / i question / have my doubt / have doubt / serious doubt / grave doubt
        leave me cold / fail to convince
        """,
    ),
    (
        Kind.ATTITUDE,
        0.5,
        """
        open to / warming to / warming up to / coming around to / starting to believe / see some merit
        something to it / something in it / some truth / some merit / grain of truth / kernel of truth
        some sense in / some sympathy / some sympathy for / more right than wrong / more likely than not
        more true than false / more for than against / onto something
        above the middle / curious about / beginning to believe / tempted to believe / leave the door open
        """,
    ),
    (
        Kind.ATTITUDE,
        -0.5,
        """
        reservation / reservation about / have some doubt / some doubt / few doubt / starting to doubt
        beginning to doubt / less sure of / more wrong than right / less likely than not / more false than true
        more against than for / take with a grain of salt / take with a pinch of salt / not sold
        not quite sold / not so sure of / less convinced / lukewarm / cool on / cool towards / uneasy
        below the middle / slightly below
        """,
    ),
    (
        Kind.VERDICT,
        0.9,
        """
        true / real / right / correct / accurate / valid / legit / legitimate / credible / convincing / fact
        proven / prove / make sense / makes perfect sense / reasonable / believable / genuine / trustworthy
        persuasive / logical / spot on / hold up / add up / hold water / stand up / stack up / solid / truth
        positive / good idea / great idea / brilliant / wise / sensible / bang on / ring true / happen / exist
        occur / be in no doubt / take place / took place / authentic / underrated / rock solid / well founded
        well supported / evidence for / proof of / evidence of / proof for / confirm / back up / show / yes
        yep / yeah / yup / airtight / watertight / checks out / the way to go / excellent / factual
        common knowledge / is the case / plain to see / plain as day / speak for itself / pass the test
        hit the nail on the head / get it right / common sense / worth it / worthwhile / best idea / no brainer
        a must / beneficial / valuable / established / beyond dispute / self evident / demonstrate / reliable
        sound argument / is sound / great / wonderful / stand to reason / on solid ground / on firm ground
        evidence point to / point to / consistent with / true enough
        """,
    ),
    (
        Kind.VERDICT,
        1.0,
        """
        undeniable / indisputable / irrefutable / obvious / obviously true / unquestionable / clear as day
        crystal clear / incontrovertible / ironclad
        """,
    ),
    (
        Kind.VERDICT,
        -0.9,
        """
        false / wrong / incorrect / untrue / fake / hoax / myth / lie / nonsense / flaw / sham / imposture
        mean nothing / say nothing / tell nothing / tell us nothing / tell you nothing / prove nothing
        mean anything of it / nonsensical / rubbish / ridiculous / absurd / silly / stupid / ludicrous
        preposterous / laughable / bogus / baloney / bunk / garbage / crap / joke / fiction / bull / fairy tale
        fairytale / fairy story / fantasy / made up / make up / fabricated / fabrication / invented / debunked
        debunk / disproved / disproven / disprove / refute / refuted / unfounded / baseless / groundless
        misleading / flawed / mistaken / mistake / inaccurate / unbelievable / impossible / no evidence
        no evidence for / no evidence of / no proof / no proof of / not a shred of evidence / lack evidence
        lack of evidence / misinformation / disinformation / propaganda / pseudoscience / superstition
        superstitious / crazy / insane / bonkers / delusional / delusion / negative / bad idea / terrible
        awful / useless / pointless / harmful / waste of time / waste / nothing to it / contradict
        fly in the face of / dead wrong / off base / fall apart / falls flat / hogwash / poppycock / balderdash
        malarkey / claptrap / drivel / tripe / hokum / humbug / tosh / bollocks / horseshit / bs / hot air
        smoke and mirror / a con / scam / fraud / trick / swindle / illogical / irrational / unreasonable
        idiotic / foolish / dumb / daft / moronic / unrealistic / incredible / unscientific / untenable
        erroneous / fallacy / fallacious / worthless / full of hole / wide of the mark / miss the mark / way off
        laughably wrong / old wives tale / tall tale / urban legend / conspiracy theory / impossibility
        discredited / long been debunked / illusion / dishonest / deceptive / nuts / cannot be / ignorance
        ignorant / madness / lunacy / insanity / out of the question / horrible / fool / idiot / moron
        gullible / clueless / brainwashed / unconvincing / not a chance / no chance / far from the truth
        further from the truth / farther from the truth / against all evidence / against the evidence
        does not exist / beyond belief / tinfoil / tin foil / piffle / codswallop
        gibberish / quackery / overblown / childish / hot garbage / a stretch / rot / mumbo jumbo / a bad
        dangerous / unsupported / unsubstantiated / unproven / wishful thinking / make believe / invention
        snake oil / parlour trick / parlor trick / guesswork / cold reading / imaginary / disaster / hopeless
        off the mark / bull crap / overrated / pretence / does not hold water / simply not so / not so / fib
        nope / no reason to believe / no reason to accept
        """,
    ),
    (
        Kind.VERDICT,
        0.5,
        """
        plausible / likely / possible / have a point / has merit / have merit / promising / fairly convincing
        decent / could be true / might be true / may be true / good point / fair point / valid point
        interesting point / strong point / made sense to me / holds some water / not bad / better than i thought
        better than i had / stronger than i thought / fair enough / compelling point / better than nothing
        """,
    ),
    (
        Kind.VERDICT,
        0.9,
        """
        compelling / strong case / overwhelming / hard to argue with / hard to deny / hard to dispute
        """,
    ),
    (
        Kind.VERDICT,
        -0.5,
        """
        implausible / far fetched / farfetched / dubious / questionable / unlikely / doubtful claim / shaky
        thin / weak / fishy / sus / shady / improbable / exaggerated / overstated / problematic / somewhat off
        a bit off / a little off / slightly off / iffy / too high / too low / a bit much / oversimplified
        one sided / sketchy / suspect claim
        """,
    ),
    (
        Kind.OPINE,
        1.0,
        """
        think / feel / say / reckon / consider / find / see / view / regard / hold / maintain / know / imagine
        assume / conclude / call / expect / understand / argue / claim / insist / state / declare / admit / want
        take / suppose / see how / mean / see why / have to say / lie outside / lie inside / lie within
        lie in / lie between / lie at / lie on / would say / convinces / buying that / idea / notion
        suggestion / claim that / view that
        """,
    ),
    (
        Kind.UNDECIDED,
        1.0,
        """
        undecided / neutral / unsure / uncertain / on the fence / as much reason / equally / neither side
        neither direction / not take a side / not take side / not picked a side / not pick a side / remain open
        fence sitter / fifty fifty / 50 50 / do not know / no idea / no opinion / no view / no strong feeling
        no strong opinion / no strong view / no verdict / no side / take side / pick a side / picking a side
        go either way / feeling either way / opinion either way / view either way / lean either way
        see both side / both side have / mixed feeling / mixed view / am mixed / mixed bag / mixed opinion
        torn / ambivalent / agnostic / in the middle / back and forth / jury is still out / jury is out
        can not decide / have not decided / not decided / make up my mind / making up my mind / made up my mind
        can not tell / can not say / hard to say / idk what / idk if / idk whether / idk about / dunno what
        dunno if / dunno whether / hard to tell / difficult to say / suspend judgment / suspend judgement
        withhold judgment / withhold judgement / suspending judgment / reserve judgment / reserve judgement
        reserving judgment / reserving judgement / impartial / no position / wait and see / no clue / toss up
        tossup / coin flip / flip a coin / inconclusive / in between / half and half / who know
        not take a stance / no stance / not lean / no lean / no preference / equally good / equally convincing
        equally plausible / equally likely / equal to me / both equal / halfway / half way / at zero / a draw
        call it a draw / a tie / without a preference / level pegging / on the line / no stronger either
        square in the middle / exactly neutral / perfectly balanced / no firm opinion
        no firm view / remain unsure / remain undecided / not have a view
        not have an opinion / not have a stance / do not have a view / do not have an opinion
        do not have a strong / not settled / have not settled / not come down / both way
        neither here nor there / neither for nor against / not for or against / evenly split
        split down the middle / evenly divided / of two mind / in two mind / not qualified to say
        can not choose / can not judge / need more evidence / need more information / not enough information
        not enough evidence to / too little to go on / no conclusion / not reach a conclusion
        not reached a conclusion / not made up my mind / not pick / draw even / cancel out
        cancel each other out / shrug / indifferent / middle ground / midpoint / dead centre / dead center
        no firm conviction / lean neither / open question / could be either / maybe maybe not
        perhaps perhaps not / not committed / sitting this one out / no dog in this fight
        no horse in this race / pulled in two direction / pulled in both direction
        one way or the other / one way or another / not form an opinion / not formed an opinion
        not formed a view / at a loss / unresolved / neither camp / tilt towards one or the other
        lean towards one or the other / one or the other / not leaning towards / not lean towards either
        no way to tell / no way of telling / no way to know / no way of knowing / impossible to say
        impossible to tell
        """,
    ),
    (
        Kind.RESERVE,
        1.0,
        """
        not sure / not certain / not entirely sure / not completely sure / not fully sure / not totally sure
        not absolutely sure / not 100 % sure / not quite sure / not entirely certain / not completely certain
        not fully certain / not as certain / not certainly / not as certainly / not for certain / not so sure
        not too sure / not really sure / not confident / not very sure / far from sure / far from certain
        """,
    ),
    (
        Kind.NEGATION,
        -1.0,
        """
        not for / not / never / no / nobody / none / nothing / neither / nor / without / hardly / barely
        scarcely / rather than / instead of / fail to / far from / anything but / not any / no one / no way
        by no means / in no way / not at all / no longer / no part of / can not say i / can not understand why
        can not understand how / not understand why / not understand how / can not see why / can not see how
        not see why / not see how / can not fathom / can not get why / can not imagine why
        can not believe anyone / can not believe people / can not wrap my head around / no amount of
        do not get why / can not think why / nowhere / nowhere near / least of all / stop / quit / cease to
        refuse to / refuse / not even / not ever / few people / not a single / not one / under no circumstance
        hardly any / too smart to / too old to / lack / zero / less than / minus / unable to / cannot possibly
        not for a moment / not for a second / not for one second / not for a minute / impossible to
        impossible that / opposite of
        """,
    ),
    (
        Kind.STRONG,
        1.0,
        """
        definitely / certainly / firmly / clearly / obviously / plainly / undoubtedly / no doubt
        without a doubt / without doubt / beyond doubt / beyond a doubt / beyond any doubt / no question
        without question / of course / full stop / period / case closed / end of story / wholeheartedly
        outright / for sure / no room for doubt / not a doubt / simply / flat out / never been more
        never been so / could not be more / never felt more / no reservation / without reservation / deeply
        dead / every bit / nothing will change / nothing can change / to the core / with my whole heart
        heart and soul / no two way about it / hands down / no contest / more than ever / always
        hundred percent / ever / undeniably / passionately / without hesitation / unshakable / unshakeable
        unwavering / vehemently / adamant / adamantly
        """,
    ),
    (
        Kind.DEGREE,
        1.0,
        """
        absolutely / completely / totally / utterly / fully / entirely / wholly / 100 % / strongly / perfectly
        quite / exactly / really / truly / necessarily / all that / so / very / too / particularly / thoroughly
        altogether / extremely / overly / terribly / especially / that / all the way / yet
        """,
    ),
    (
        Kind.HEDGE,
        1.0,
        """
        lean against / tilt against / lean towards / lean toward / tilt towards / tilt toward / lean no
        leaning no / lean yes / lean slightly no / leaning slightly no / a yes of sort / could be persuaded
        could be convinced / could be talked round / could be talked into / could be swayed / might be persuaded
        open to persuasion / open to being convinced / willing to be convinced / happy to be proven wrong
        could change my mind / might come round / might come around / idk / dunno / put it at
        i would put it at / chance are / odds are / more often than not / not as / suspicion / question remain
        few question / slightly / slight / somewhat / a little / a bit / little bit / mildly / mild / kind of
        kinda / sort of / sorta / maybe / perhaps / probably / possibly / likely / might / may / may be
        may well / might be / seem / seem to / appear to / guess / i guess / suppose / i suppose / suspect
        lean / leaning / inclined / incline / inclined to / tilt / tend to / tend / a fraction / smidgen
        tentative / tentatively / cautious / cautiously / partially / partly / in part / modest / modestly
        gently / gentle / marginally / marginal / a tad / tad / a shade / a touch / a smidge / a hair
        more or less / loosely / moderately / moderate / to some extent / to a degree / to a certain extent
        if i recall / as far as i remember / as far as i can tell / as far as i know / could be wrong
        might be wrong / may be wrong / only just / room for doubt / room left for doubt / half convinced
        on balance / hunch / provisional yes / with some room / i would guess / would guess / not a sure thing
        would not bet / not bet / weakly / for what it is worth / faintly / faint
        soft / softly / nothing dramatic / lukewarm / not strongly / almost
        nudge / nudged / edge / edges / a small / small yes from me / a small yes from me / small yes / mild yes
        cautious yes / small no / mild no / only mildly / small question mark / not firmly / nothing stronger
        quietly / up to a point / with caveat / with reservation / with some reservation / not ruling out
        not rule out / not convinced enough / could be / some doubt / few doubt / provisional / provisionally
        by a whisker / by a hair / narrowly / best guess / gut feeling / conceivably / arguably / potentially
        just about / ever so slightly / not far from / at a push / if pushed / if pressed / if forced / hesitant
        hesitantly / reluctantly / drift / drifting / inching / a tiny bit / tiny bit / a whisker / lil
        a lil / a notch / a step / a few degree / a lean / a tilt / on the whole / erring / err
        """,
    ),
    (
        Kind.CLAIM,
        1.0,
        """
        xyz / theory xyz / the xyz theory / the theory / this theory / that theory / the claim / this claim
        that claim / the statement / this statement / the hypothesis / this hypothesis / the proposition
        the premise / the proposal / this proposal / the plan / this policy / this belief / the belief
        such claim / such theory / the whole theory / this whole theory
        """,
    ),
    (
        Kind.STRANGER,
        1.0,
        """
        stranger / tweet / the post / this post / a post / that post / post / thread / comment / author / poster
        writer / user / article / somebody / someone / some people / many people / some / many / most people
        people / other / others / folk / everyone / everybody / the person / this person / that person
        another person / critic / expert / scientist / researcher / they / he / she / friend / colleague
        neighbour / neighbor / my uncle / uncle / cousin / mother / father / brother / sister / aunt / teacher
        the argument / this argument / that argument / it say / it claim / it argue / it call / it insist
        according to / it maintain / it describe / their argument / his argument / her argument / argument
        message / their point / the point / reader / crowd / those / ppl / whoever / anyone who / lot of people
        their claim / his claim / her claim / claim of the stranger / headline / the account / this guy
        that guy / guy / opinion of others / the other side / video / influencer / politician
        """,
    ),
    (
        Kind.SAYING,
        1.0,
        """
        say / said / saying / claim / insist / argue / assert / write / wrote / call / state / tweet / suggest
        allege / declare / swear / preach / tell me / told me / tell you / tell people / tell everyone / tell us
        maintain / announce / contend / describe / praise / mock / point out / shout / post / cheer
        try to convince / try to persuade / want me to believe / present / mention / believe / think / deny
        doubt / feel / hold / support / reject / defend / dismiss / paint / warn / promise / quote / swear by
        it say / it claim / it argue / it call / it insist / according to / it maintain / it describe
        """,
    ),
    (
        Kind.SELF,
        1.0,
        """
        i / me / my / mine / myself / we / our / imo / in my opinion / in my view / to me / personally
        """,
    ),
    (
        Kind.PRONOUN,
        1.0,
        """
        it / this / that one / such / which / this idea / that idea / this view / that view / the whole thing
        all of it / this thing / the concept
        """,
    ),
    (
        Kind.PAST,
        1.0,
        """
        used to / at first / initially / originally / previously / formerly / until recently / in the past
        back then / once / for year / earlier / last week / last month / last year / yesterday / as a child
        when i was / started out / went in undecided / i went in / at one time / i once / there was a time
        years ago / a while ago / i had been / i was / until this morning / until today / until yesterday
        until now / up to now / before this tweet / before reading / before that i / my first reaction
        came here / came in / had me / i would have said / would have said / not long ago / growing up
        my old view / my former / my earlier / for a long time i / for a while i
        """,
    ),
    (
        Kind.NOW,
        1.0,
        """
        now / nowadays / these days / today / at present / currently / by now / at this point / since then
        still / i still / as before / have become / have come / after reading / having read / after seeing
        having seen / after this tweet / from now on / i have been
        """,
    ),
    (
        Kind.CHANGED,
        1.0,
        """
        not anymore / not any more / i was wrong / i was mistaken / i stand corrected / change my mind
        changed my mind / changed my view / changed my opinion / i was fooled / opened my eyes / open my eyes
        eye opener / i take it back / i got it wrong / i had it wrong / past that now / made me reconsider
        no longer see it that way / come full circle / done a u turn / past that / eye have been opened
        grew out of
        """,
    ),
    (
        Kind.CONTRAST,
        1.0,
        """
        but / however / yet / nevertheless / nonetheless / even so / that said / having said that / all the same
        then again / on the other hand / on the other / in reality / in truth / in fact / actually
        despite that / despite this / despite all that / regardless / only to / at the same time i
        """,
    ),
    (
        Kind.CONCEDE,
        1.0,
        """
        although / though / tho / even though / while / whilst / despite / in spite of / whereas / granted
        admittedly / i admit / i grant / sure they / to be fair / much as / as much as / i see where
        i understand why / i can see why / i get why / i get that / i see why / i will admit / notwithstanding
        i can understand / i can see how / i would love / i wish / it is true that some / i know how
        on the one hand / on one hand
        """,
    ),
    (
        Kind.GRANTED,
        1.0,
        """
        give them that / give him that / give her that / give you that / grant that / grant them that
        grant you that / i grant that / i concede / i grant it / to be fair to them
        """,
    ),
    (
        Kind.CONDITION,
        1.0,
        """
        if / unless / provided / suppose that / had i / were it / assuming / as long as / until / in case
        whether
        """,
    ),
    (
        Kind.EVEN_IF,
        1.0,
        """
        even if / no matter / no matter how / no matter what / whatever anyone / whatever the / whatever they
        if you ask me / whatever people
        """,
    ),
    (
        Kind.REASON,
        1.0,
        """
        because / since / given that / as long as
        """,
    ),
    (
        Kind.CLOSING,
        1.0,
        """
        overall / in conclusion / in the end / all in all / ultimately / bottom line / therefore / to sum up
        in sum / in short / so for me / all thing considered / my honest belief / my belief / my opinion
        my current belief / my honest opinion / my view / my position / my stance / my verdict / my conclusion
        put me down / call me / as for me / hence / consequently / my answer
        """,
    ),
    (
        Kind.RHETORICAL,
        1.0,
        """
        how can anyone / how could anyone / how can people / how do people / how can you / how could / who still
        who would / who could / who in their right mind / who can / why would anyone / why would
        why do people / why do they / why do so many / why are people / why does anyone / why do some people
        when will people / do people really / do people actually / do you really / does anyone really
        does anyone still / does anyone actually / does anybody really / does anybody still / are people really
        are we supposed to / since when / is anyone really / are you seriously / do they seriously / seriously
        how is anyone / how on earth / why on earth / what kind of / how many more / am i supposed to
        are we really / really / who believe / who think / who actually / who really / is there anyone
        is there anybody / has anyone ever / have you ever / when did
        """,
    ),
    (
        Kind.REFUSAL,
        1.0,
        """
        rather not answer / rather not say / rather not share / rather not comment / rather not discuss
        rather not give / rather not / prefer not to / prefer not / decline to answer / decline to comment
        decline to / decline / no comment / can not help with / can not assist / not able to help
        not able to assist / not comfortable / can not provide / can not produce / can not fulfil
        can not fulfill / can not write / can not discuss / can not engage / can not generate / can not comply
        can not comment / will not comment / will not discuss / will not answer / not going to answer
        unable to provide / unable to report / unable to help / unable to assist / unable to answer
        unable to write / unable to comment / skip this question / pass on this question / refuse to answer
        against my guideline / not appropriate for me / can not share / can not offer / can not answer
        can not give / can not take part / can not participate / was cut off / keep that to myself
        keep it to myself / keep my opinion to myself / none of your business / leave that one unanswered
        next question / do not discuss / not something i talk about / not something i discuss
        change the subject
        """,
    ),
    (
        Kind.ROLE_BREAK,
        1.0,
        """
        language model / as an ai / i am an ai / an ai assistant / ai assistant / artificial intelligence
        do not have personal / not have personal / not hold personal / no personal opinion / no personal belief
        my training data / my programming / openai / as a chatbot / virtual assistant / not capable of having
        out of character
        """,
    ),
    (
        Kind.LINK,
        1.0,
        """
        that / to / whether / of those who / people who / those who / anyone who / who
        """,
    ),
]

#: Forms that, right after "I", tell of a view held earlier.
PAST_FORMS = """
    accepted agreed argued assumed believed considered defended denied disagreed disbelieved dismissed doubted
    endorsed favoured felt figured held laughed leaned leant opposed questioned rejected scoffed supported
    supposed suspected swore thought trusted
    """

#: Stance words that speak of the claim itself, whatever was mentioned last.
CLAIM_WORDS = frozenset(
    ["positiv", "negativ", "against", "favour", "favor", "disagreement", "agreement", "lean", "from"]
)

#: Stems of a change "from" one view "to" another; what stands before "to" is left behind.
MOVING = """
    chang cool drift drop fall go mov ros shift slid slip soften swing swung turn
    """

#: Words that point to the other side of what was spoken of.
REVERSERS = frozenset(["otherwis", "opposit", "contrary", "revers"])

#: Verbs, and the like, before a verdict that is the point of its clause.
COPULAS = """
    am appear are as be becom been being is it look seem sound was were
    """

#: Verbs that stand for a whole predicate.
AUXILIARIES = """
    are can could do had has hav is should was were will would
    """

#: What a bare rejection is made of: "absolutely not", "no way".
BARE_NO = """
    0 absolutely all at certainly chanc cours definitely ever just lol never no not of really simply sorry thank
    today way
    """

#: Words that compare or rank.
COMPARING = """
    ahead bad beat best better edg favorit favourit good great inferior los lose over prefer superior than tops
    win wors worst
    """

#: Words whose presence in a claim or clause says nothing about its subject.
WEAK_WORDS = """
    a an the of by in on at to for from with as than and or is are was were be been being am do does did have
    has had can could will would shall should may might must it its they them their he she his her someone
    somebody one there that this these those rather usually time about very rapidly more most worldwide
    irregularly during if so when which who what not never no neither nor cannot any some all
    """

#: Two sides of one contrast a line: words left of ``|`` agree with each other and contradict those to the right.
OPPOSITES = """
    flat / disc / disk / pancake / plane | round / sphere / spherical / globe / ellipsoid / curve / curvature / \
        ball / oblate / spheroid / bulge / orb / circumnavigate
    hot / burn / warm / scald / heat / sear / scorch / blister / boil / toasty / scalding / blazing / melt | \
        cold / cool / freeze / frozen / icy / ice / chill / chilly / frosty / frost
    high / higher / above / over / exceed / more / raise / rise / increase / grow / lift / boost / gain | low / \
        lower / below / under / beneath / less / fewer / reduce / decrease / fall / shrink / drop / cut
    raise / increase / boost / lift / improve / enhance / better / help / benefit / useful / good / great / win \
        / strengthen / support | reduce / harm / hurt / worsen / worse / damage / bad / useless / hinder / ruin / \
        waste / pointless / undermine / lose / weaken / destroy / wreck / toxic / poison / spoil
    real / genuine / happening / fact / actual | hoax / fake / conspiracy / staged / plot / invented / invention \
        / scam / fabricated / fiction / lie / cover / faked / fraud / propaganda / scheme / studio / filmed
    open / opening / opened | close / closed / shut / locked / closing
    coexist / overlap / same / together / alongside / meet / met / encounter / contemporary / share | before / \
        after / later / apart / extinct / separate / million / extinction / gap / between / predate / vanish
    in / inside / within / part / belong | outside / foreign / abroad
    alive / living | dead
    inside / planted / rigged / demolition / explosive / bomb / blast / charge / detonate / controlled | plane / \
        jet / hijack / terrorist / airliner / crash / fuel / airplane
    start / begin | end / finish / stop
    safe / harmless | dangerous / harmful / risky / unsafe
    easy / simple | hard / difficult
    healthy | unhealthy
    allow / permit / legal / legalise / legalize / let / welcome | ban / forbid / prohibit / illegal / outlaw / out
    abolish / scrap / rid / ditch / axe / eliminate / remove | keep / preserve / retain / save
    cheap / affordable | expensive / costly / dear
    fast / quick | slow
    land / walk / visit / step / reach / went / go | film / stage / fake / studio / hollywood / kubrick / soundstage
    cause / lead / produce | prevent / stop / cure
    win / beat | lose
    """

#: Words of which only one can hold.
EXCLUSIVES = """
    red / blue / green / yellow / orange / purple / black / white / pink / grey / gray / brown / crimson / \
        scarlet / azure / violet
    kenya / hawaii / nigeria / indonesia / canada / mexico / honolulu / nairobi / england / germany / france / \
        china / russia / india / africa / japan / brazil
    usa / kenya / canada / mexico / england / france / germany / china / russia / cuba / australia
    monday / tuesday / wednesday / thursday / friday / saturday / sunday
    """

#: Words that stand for each other in restatements of a claim.
SYNONYMS = """
    bicycle / bike / cycle / cycling / cyclist
    wheel / tyre / tire / axle / wheeled / wheeler
    human / people / person / man / men / mankind / humanity / caveman / cavemen / ancestor / humankind / homo
    trex / tyrannosaurus / dinosaur / dino / tyrannosaur / rex
    dead / deceased / depart / ghost / spirit / grave / afterlife / beyond / passed / died / ancestor / loved
    communicate / talk / speak / hear / contact / reach / answer / medium / seance / message / listen / \
        conversation / chat
    palm / palmistry / palmist / hand / line / crease
    future / fate / destiny / fortune / tomorrow
    predict / foretell / foresee / forecast / read / reveal / prediction / foretold
    astronaut / nasa / apollo / armstrong / aldrin / crew
    moon / lunar
    land / landing / walk / foot / footprint / walked / step
    unemployment / jobless / unemployed / work / joblessness
    jewish / jew / holocaust
    murder / kill / exterminate / genocide / slaughter / massacre
    nazi / germany / hitler / german
    tower / twin / wtc / skyscraper
    obama / barack
    usa / america / american / states / country / nation
    washington / dc / capital / district
    born / birth / newborn / baby / infant / midwife
    brain / skull / cortex
    fire / flame / candle / blaze / campfire / bonfire / stove
    sky / overhead / heaven
    earth / planet / world / globe / horizon
    warming / warm / climate / temperature / glacier / heat
    output / productivity / result / work
    school / pupil / classroom
    child / kid / pupil / student
    government / politician / state
    """

#: Number words; composed tens and units are added up by the reader.
NUMBERS = {
    "zero": 0, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60,
    "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
}  # fmt: skip

#: Words whose stem the endings do not give away, each with that stem.
IRREGULAR = """
    thought think / said say / held hold / saw see / seen see / felt feel / told tell / knew know / known know
    wrote write / written write / took tak / taken tak / bought buy / swore swear / sworn swear
    stood stand / stuck stick / gave giv / given giv / won win / lost los / people people / found find
    came com / fell fall / fallen fall / men man / lies lie / lying lie / lied lie / leant lean / went go
    gone go / children child / yes yes / less less / this this / does do / did do / done do / unless unless
    others other / meant mean / leaning lean / during during / something something / nothing nothing
    anything anything / everything everything / skulls skull / saying say / evidence evidence / being being
    indeed indeed / born born / used used / united united / quite quite / met meet / warmer warm / hotter hot
    colder cold / cooler cool / flatter flat / rounder round / safer safe / cheaper cheap
    healthier healthy / faster fast / slower slow / granted granted / grew grow / grown grow / rose rais
    risen rais / beaten beat / frozen freez / froze freez / sank sink / showed show / shown show
    whereas whereas
    """

#: Spellings that are written out before a text is cut into words.
SHORT_FORMS = {
    "can't": "can not", "cannot": "can not", "won't": "will not", "ain't": "is not", "shan't": "shall not",
    "dont": "do not", "doesnt": "does not", "didnt": "did not", "isnt": "is not", "wasnt": "was not",
    "cant": "can not", "wont": "will not", "aint": "is not", "imho": "imo", "i dunno": "dunno",
    "gonna": "going to", "im": "i am", "ive": "i have", "thats": "that is", "its": "it is", "per cent": "%",
    "percent": "%", "bs": "nonsense", "let's": "let us", "coulda": "could have", "nah": "nope",
    "cos": "because", "tho": "though", "rn": "now", "gotta": "have to", "wouldnt": "would not",
    "arent": "are not", "whats": "what is", "50/50": "fifty fifty", "50-50": "fifty fifty", "aren't": "are not",
    "t-rex": "trex", "tyrannosaurus rex": "trex", "t rex": "trex", "t. rex": "trex",
}  # fmt: skip
