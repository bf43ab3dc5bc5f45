"""The tables the lexicon classifier reads texts with; the code that applies them is in `_lexicon`.

A table is a text in which entries are parted by ``/`` or a line end. Words are compared by stem, so one form of a
word stands for all; the longest entry that matches wins.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a word or phrase does in a clause."""

    # An enum hashes by name through Python code; members are looked up a few hundred times a text.
    __hash__ = str.__hash__

    ATTITUDE = "attitude"
    """What a person does to a target: believe (+1), doubt (-1)."""
    VERDICT = "verdict"
    """What is said of a target: true (+1), nonsense (-1)."""
    TASTE = "taste"
    """Praise (+1) or blame (-1) of a thing; tells an opinion where the claim praises or blames the thing itself."""
    ECHO = "echo"
    """Repeats (+1) or turns round (-1) what was said last by somebody else."""
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
        like the idea / share the view / hold that view / i know that / i know it / i know this
        no doubt about it / no doubt about that / no doubt about this / we all know / everyone know
        know for a fact / take it as given / bet on / put my money on / right behind / vote for / hold true
        have no problem with / see the appeal of / see merit in / find merit in / concur / affirm / admire
        value / welcome / drawn to / recommend / hold to / hold on to / cling to / on the side of / on its side
        one of the believer / positive towards / positive about / positive on / favourable / favorable / towards
        toward / in the direction of / lean towards / lean toward / tilt towards / tilt toward / agreement
        in agreement / belief in / confidence in / support for / trust in / firmly behind / fully behind
        completely behind / 100 % behind / stand firmly behind / fall for / fell for / a convert
        complete convert / am warm / be warm about / warm about / taken with / persuade / come down for
        believe every word / swayed towards / leaning yes / lean yes / say yes / give it credence
        give credence to / put stock in / put faith in / put much stock in / rely on / bank on / tick yes
        nod along / nod / my answer is yes / the answer is yes / yes to / side of / fall on the side of / adore
        am sold / amen / at peace with / back it / be sold / behind it / believer camp / buying it
        can get behind / certainty / cherish / come down in favour of / come down on the side of
        comfortable with / content with / conversion to / converted / conviction / crave / credit / delighted
        down with / endorsement / exactly this / fine by me / full support / get my vote / give it the nod
        go for / gospel / grateful / gravitate to / gravitate towards / has my vote / hat off to
        have become convinced / hell yes / here for it / high five / i am here for / i am with / i back
        in the camp of / kudos / lap up / lean in / lean in favor / lean in favour / look forward to
        made a believer / make a believer / money on / my money is on / my support / my vote go to
        no objection to / no quarrel with / nothing but praise / opt for / partial to / persuasion of / plus one
        preach / prepared to accept / prepared to believe / proud of / pushed me towards / put it beyond
        put me down as a yes / put me down for / ready to accept / relieved / rooting for / see eye to eye
        see the sense in / see the sense of / side of those who believe / so much this / swallow / swung me
        take as gospel / take my word / take the side of / team xyz / thankful / the yes column / this so much
        thoroughly convinced / thumb up for / tick the yes box / tip me towards / tips me / treasure
        unreserved support / vouch / willing to believe / works for me / yes camp / yes column / yes please
        a thousand times yes / a yes / adherent / advocate of / ally / argument for / argument in favor
        argument in favour / backer / belief / bet good money / bet my house / bet my house on / bet my life on
        bet the farm / big yes / can get on board / case for / case in favor / case in favour / clear yes
        come over to / convert me / converted me / convincing case / defender / definite yes / devotee
        disciple / enthusiast / faithful to / find convincing / find persuasive / firm yes / follower
        go over to / gone over to / ground for believing / grounds for / impressed / impressed by
        lean that way for good / loyal / loyal to / make more sense than / optimistic / optimistic about
        point in favor / point in favour / proponent / reason for / reason to accept / reason to believe
        reason to think / resounding yes / stake my life on / stake my reputation on / strong yes / sway me
        swayed by / swayed me / take to / trust her / trust him / trust them / win over / acknowledge / adopt
        argue for / assent / assent to / be persuaded / behind the idea / campaign for / espouse / favor
        favour / fight for / firm believer / fully accept / give it weight / give weight to / go with
        go with it / have time for / hold dear / look favourably on / profess / push for / recognise / recognize
        root for / run with it / speak for / speak up for / stand up for / stand with / swear on
        take it seriously / take seriously / think highly of / true believer / uphold / well disposed to
        acceptance / advocacy / allegiance / allegiance to / approval / embrace of / endorsement of / fan
        """,
    ),
    (
        Kind.ATTITUDE,
        -0.9,
        """
        opposition to / doubt about / not me / pretend / stop pretending / keep pretending / not for / small no
        mild no / reject / dismiss / deny / disagree / disagree with / disbelieve / oppose / opposed to
        distrust / mistrust / against / unconvinced / refuse to believe / refuse to accept / refuse to buy
        dispute / laugh at / laugh off / scoff / scoff at / roll my eyes / hard to believe / hard to accept
        hard to swallow / hard to buy / hard to take seriously / struggle to believe / find it hard to believe
        find it hard to accept / object to / rule out / set against / come out against / waver / shaken / shake
        reject outright / rubbish this / away from / no fan of / stop believing / give up on / lose faith in
        lost faith in / turn my back on / a no from me / no from me / vote no / thumb down / count me out
        walk away from / part way with / part company with / fed up with / detest / hate / dislike / resist
        push back on / push back against / argue against / want nothing to do with / have no time for
        no time for / have nothing to do with / disapprove / condemn / denounce / vote against / talk me out of
        take issue with / snort / can it be / disbeliever / denier / contrary to / unbeliever / put off by
        throw out / poke hole in / repudiate / draw the line / my answer is no / the answer is no / no to
        not having it / turn down / abandon / disagreement / in disagreement / leaning no / lean no
        lean slightly no / leaning slightly no / lean against / tilt against / on the side of no
        the side of no / say no / would say no / leaning against / not having any of it / side eye
        trusting it less / less trusting / mock / drop the idea / have let go of / let go of / turn me off
        turn me against / turn against / sour on / decline to believe / abhor / afraid of / as if / ashamed
        belong in the bin / bet against / bin it / bothered by / boycott / can not abide / can not stand
        can not stomach / come off it / consign / cringe / dead set against / despise / disagreeable / disbelief
        do not move me / draw a line / dread / embarrassing / eyeroll / facepalm / fail to see / fall short
        get in the bin / get out of here / get the bin / give it up / give me a break / god no / hard no
        hard nope / hard pass / have given it up / have had enough of / have none of it / heck no / hell no
        in the bin / in the no camp / in your dreams / incredulous / into the bin / its critic
        leave a lot to be desired / leave much to be desired / loathe / lost me / make me laugh / miss me with
        my foot / no camp / no column / no sale / no thank you / no thanks / nope out / not fooled
        not impressed / not moved / not on my watch / oh please / opposition / over my dead body / protest
        protest against / pull the other one / put me down as a no / regret / resent
        reservations about the whole / ridicule / right up there with / roll eyes / scared of / see through
        shake my head / shun / sick of / side of those who doubt / side with critics / skeptic of / smh / sneer
        sneer at / spare me / spurn / steer clear / take exception to / tell me another / the no column
        tick the no box / tired of hearing / ugh / unfit / unimpressed / unmoved / unpersuaded / unswayed
        up in arms / wash my hands of / worry about / wrong headed / yeah right / yikes / a no / another genius
        argument against / at odds with / back away from / big no / call bs / call bull / call nonsense
        case against / chuckle / clear no / contest / critic of / deaf ear / definite no / detractor
        disappointed by / disenchanted / disgust / disgusted / disillusioned / disillusioned with
        distance myself from / ditch / drop / evidence against / find wanting / firm no / flat no / foe / foe of
        forsake / giggle / give up / held out against / hold out against / laugh / laugh out of / lose my faith
        lose patience / lost my faith / make fun of / move away from / naysayer / never in my life
        no hope in hell / non believer / nonbeliever / not a hope / not in a million year
        not in a thousand year / not in my lifetime / not on your life / odds with / oh great / oh sure / oh wow
        opponent / part company / part with / pessimistic / pessimistic about / pig can fly / pig fly
        pig might fly / poke fun at / put me off / quarrel with / reason against / reason to disbelieve
        reason to doubt / reason to reject / relinquish / renounce / repel / repelled by / resounding no
        retreat from / revolt / run away from / shed / strong no / sure jan / talk me out / talked me out
        turned me off / without that belief / yeah sure / cause to doubt / cause to waver / reason to waver
        balk at / baulk at / boo / bristle at / brush it aside / brush off / campaign against
        close the door on / decry / deride / disavow / discount / disown / fight against / give no credence
        hiss / jeer / look down on / make nothing of / negate / put no faith in / put no stock in / rail against
        rebuff / rebut / recoil from / rule it out / scorn / see nothing in / shrug off / shut the door on
        sick and tired of / speak against / speak out against / stand against / swear off / take a dim view of
        think little of / think nothing of / think poorly of / turn my nose up / wave away / write it off
        write off / aversion to / contempt for / denial of / disapproval / dismissal of / distrust of / hater
        hater of / hostility to / hostility towards / refusal to believe / rejection / rejection of
        resistance to
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
        more true than false / more for than against / onto something / above the middle / curious about
        beginning to believe / tempted to believe / leave the door open / a shade closer / beginning to see
        beginning to suspect / beginning to think / beginning to wonder / can live with / closer to it
        come round a bit / coming around / coming round / coming round to / could be onto something
        could live with / do not mind / give it the benefit of the doubt / growing on me / grown on me
        grows on me / half believe / half persuaded / have warmed to / intrigued / intrigued by
        likelier than not / may have a point / more good than harm / more help than harm
        more plausible than not / more than half convinced / not averse to / not opposed to / room for it
        soft spot for / something to be said for / starting to see / starting to think / sympathetic to
        sympathise with / sympathize with / warmed to / well disposed / worth a shot / worth a try
        worth considering / would not mind / be said for / lean in its direction / lean in its favour
        lean in that direction / lean its way / lean that way / lean this way / merit in / qualified yes
        sense in / soft yes / something in / something to / tentative yes / truth in / truth to / weak supporter
        cautiously optimistic / cautiously optimistic about / benefit of the doubt / the benefit of the doubt
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
        below the middle / slightly below / apprehensive / bother me / cagey / cannot quite / cold feet
        gave me pause / give me pause / hard to square / leave me wondering / leery / less keen
        little going for it / misgiving / more harm than good / more trouble than / nag at me / niggle
        not a big fan / not a huge fan / not all that keen / not crazy about / not entirely comfortable
        not fully on board / not overly impressed / not overly keen / not quite convinced / not quite there
        not so keen / not that keen / not the biggest fan / not too keen / not wild about / qualm
        raise an eyebrow / raised eyebrow / rather little / second thought / starting to wonder
        a stretch too far / bet against / cannot shake the doubt / harder to believe / qualified no / soft no
        tentative no / wonder whether / waver
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
        evidence point to / point to / consistent with / true enough / a certainty / a given / about time
        ample evidence / as sure as / backed by / bear out / borne out / bulletproof / can not be beaten
        cannot be beaten / cast iron / certainty / champion of / clear evidence / cogent / consensus
        corroborate / corroborated / dead right / documented / documented fact / every reason to / facts
        facts only / fine by / fine idea / foregone conclusion / goes without saying / gold standard
        good evidence / good reason / good reason to / grounded in / high time / legit af / long overdue
        mountain of evidence / no cap / nothing beat / nothing but the truth / on the money / on the nose
        open and shut / overdue / overwhelming evidence / plenty of evidence / preach it / real deal
        right call / right move / right on / right thing / rigorous / sane / settled / settled science
        slam dunk / so true / strong evidence / supported by / the gospel truth / the only sane
        the only sensible / the real deal / too true / tried and tested / unassailable / uncontested
        undisputed / verifiable / verified / verify / very true / vindicate / vindicated / well attested
        well documented / well established / well grounded / wise choice / as real as / as true as it get
        carry the day / carry weight / convince / evidence is clear / feel right / has been proven
        has been shown / it is a fact / look right / make more sense / makes a lot of sense / makes sense to me
        makes total sense / more convincing / more credible / more persuasive / nothing make more sense
        outweigh / plain fact / proof / rest on solid / seem right / simple fact / sound right / speak volume
        stand firm / stronger / the truth / watertight case / win the day / is so / it is so
        no doubt they were / as clear as / beyond argument / borne out by / coherent / conclusive / consistent
        correct as / decisive / definitive / dependable / deserved / faultless / flawless / impressive
        justified / merited / no arguing with / no denying / no escaping / no getting around / no way around
        not in doubt / not open to debate / not up for debate / on point / on target / past doubt
        substantiated / there is no denying / there is truth / truthful / unimpeachable / veritable / warranted
        well argued / well reasoned
        """,
    ),
    (
        Kind.VERDICT,
        1.0,
        """
        undeniable / indisputable / irrefutable / obvious / obviously true / unquestionable / clear as day
        crystal clear / incontrovertible / ironclad / as plain as / axiomatic / beyond question / indubitable
        inescapable / plain truth / self-evident / unmistakable
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
        does not exist / beyond belief / tinfoil / tin foil / piffle / codswallop / gibberish / quackery
        overblown / childish / hot garbage / a stretch / rot / mumbo jumbo / a bad / dangerous / unsupported
        unsubstantiated / unproven / wishful thinking / make believe / invention / snake oil / parlour trick
        parlor trick / guesswork / cold reading / imaginary / disaster / hopeless / off the mark / bull crap
        overrated / pretence / does not hold water / simply not so / not so / fib / nope / no reason to believe
        no reason to accept / a non starter / a pain / absurdity / absurdly / asinine / backward step
        backwards / bananas / barking / barmy / batty / bigfoot / bilge / blunder / bosh / brainless / bullcrap
        bullshit / bunkum / campfire tale / charade / cheat / cherry picked / clown / clownery / clownish
        cobblers / cock and bull / collapse / collapses / comedy / comical / con / con artist / con trick
        concocted / concoction / confused / contrary to fact / cope / copium / could not happen / counterfeit
        crackpot / crank / crapola / crock / crock of / crumble / crumbles / cry wolf / cuckoo / deluded
        delulu / demented / demonstrably false / deranged / doctored / does not follow / does not stand up
        empty talk / eyewash / fairies / fairy / fairy dust / falls to pieces / far too high / far too low
        farce / farcical / father christmas / fatuous / fearmongering / flapdoodle / flat wrong / folly
        foolishness / forged / forgery / ghost story / gossip / grift / grifter / guff
        has nothing going for it / hearsay / heavy handed / hogswallop / hollywood nonsense / hooey
        horsefeathers / idiocy / inane / inconceivable / indefensible / inexcusable / just a story / just wrong
        kooky / laughing stock / loony / ludicrousness / magic bean / mid / mindless / misconception / misguided
        misinformed / misplaced / mistaken belief / misunderstanding / mixed up / mockery / never happen
        never happened / no basis / no foundation / no good / no merit / no substance / no such thing / no use
        no way on earth / non sequitur / nonstarter / not result / not stand up to scrutiny
        nothing going for it / nothing of the kind / nothing of the sort / nutty / off the rail
        off your rocker / old wives / overreach / phoney / phony / phooey / photoshopped / pish / pixie dust
        plain wrong / ploy / potty / puerile / punchline / pure cap / racket / ratio / raving / rigged / risible
        rumor / rumour / santa / santa claus / scandal / scandalous / scaremonger / scaremongering / sci fi
        science fiction / self defeating / senseless / shell game / simply wrong / smokescreen / staged
        step back / step backward / storytelling / stupidity / talk nonsense / talk rubbish / talking rubbish
        tommyrot / tooth fairy / total bull / trash / trashy / travesty / twaddle / uncalled for / unheard of
        unhinged / unicorn / unimaginable / unjustifiable / unjustified / unscholarly / unthinkable
        unwarranted / upside down / utterly wrong / vacuous / wacko / wacky / waffle / without basis
        without foundation / without merit / without substance / witless / worse idea / worst idea / wrongheaded
        yarn / bunch of baloney / contradicted by / could not be further from the truth / dead end / devoid of
        do not cut it / does not convince / does not fly / doom / fabric of lie / fails / failure / falsehood
        fanciful tale / hollow / is cap / load of / make little sense / make no sense / no argument for
        no leg to stand on / no truth / no truth in / no truth to / not a grain of truth / not a leg to stand on
        not a word of it / not a word of truth / not an ounce of truth / not cut it / not fly / not make sense
        nothing could be farther from the truth / nothing could be further from the truth / nothing in
        nothing to / pack of lie / pile of / reek of / rejected by / ring hollow / rings false / ruled out
        single word of / smell of / sounds false / stink of / thinner / weaker / web of lie / zero evidence
        zero proof / is anything but / it is anything but / bait / blown out of the water / card trick
        cash grab / click bait / clickbait / con job / conjuring trick / contrived / discredit / dishonesty
        fictional / fictitious / half truth / hot take / ill conceived / ill founded / illegitimate / incoherent
        inconsistent / indefensibly / invalid / money grab / mumbo / mythical / not credible / optical illusion
        parody / past belief / prank / preposterously / satire / shot down / specious / spurious / torn apart
        trickery / troll / trolling / trumped up / unreliable / unsound / untrustworthy / untruthful
        unverified
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
        adds up somewhat / all right / alright / arguable / conceivable / credible enough / defensible
        feasible / half right / half true / halfway plausible / imaginable / kinda nice / likelier
        more plausible / mostly right / mostly true / nice enough / not absurd / not crazy / not implausible
        not impossible / not out of the question / not silly / not so bad / not stupid / not that bad
        not unreasonable / not without merit / not wrong / partly right / partly true / passable
        pleasant enough / pretty good / quite good / rather pleasant / semi plausible / sound enough / tenable
        worth thinking about / fair / likelier to be true / more likely / more likely true / plausible enough
        rather plausible / reasonable enough / seem about right / could be so / may be so / maybe so
        might be so / perhaps so
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
        one sided / sketchy / suspect claim / a reach / dodgy / excessive / fanciful / flimsy / half baked
        half true at best / half wrong / hard to credit / hazy / less likely / less plausible / little evidence
        little merit / little point / little reason / meh / mostly false / mostly wrong / muddled / murky
        naive / not great / not ideal / not much evidence / not the best / optimistic / over the top
        partly wrong / patchy / premature / rather high / rather low / rather steep / scant evidence
        simplistic / so so / suspicious / tenuous / thin evidence / too far / too neat / too simple / too strong
        unclear benefit / underwhelming / unpersuasive / wobbly / cherry picking / conjecture / contestable
        controversial / debatable / incomplete / inconclusive at best / lacking / loose / not persuasive enough
        patchy at best / pretty weak / quite weak / rather weak / speculative / unfinished / unsatisfying
        untested / vague / wishy washy
        """,
    ),
    (
        Kind.TASTE,
        0.9,
        """
        amazing / awesome / bargain / beautiful / best / better off / blessing / bliss / calm / charm / charming
        cheerful / clever / comfort / comfortable / convenient / cosy / cozy / crucial / decency / delicious
        delight / delightful / dignity / does wonders / easier / easy / elegant / essential / fabulous
        fairness / fantastic / favorite / favourite / flourish / freedom / fresh / friendly / fun / gem
        generous / godsend / handy / happier / happy / heal / healthier / heaven / helpful / important / joy
        kind / lifesaver / lively / lovely / magic / magical / magnificent / marvellous / marvelous
        much needed / necessary / needed / paid off / paradise / pays off / peaceful / perfect / pleasant
        pleasure / practical / refreshing / relaxed / relaxing / safe / safer / second to none / simpler / smart
        smile / smooth / soothing / splendid / superb / superior / tasty / terrific / thrive / treat
        unbeatable / useful / valuable / vital / welcome / winner / works wonders / adore / enjoy / give mine up
        hate to lose / hate to see it go / love / miss it / never part with / sad to see it go / sorry to lose
        sorry to see it go / would miss
        """,
    ),
    (
        Kind.TASTE,
        -0.9,
        """
        abysmal / annoying / appalling / atrocious / awkward / bland / boring / bullied / bully / burden
        calamity / catastrophe / catastrophic / chore / clumsy / clutter / costly / counterproductive / crackle
        cruel / cruelty / damaging / danger / desert / destructive / dire / dirty / disgrace / disgraceful
        dismal / drag / dreadful / exhausting / fiasco / filthy / flicker / ghastly / greed / greedy / hassle
        hazard / headache / hell / hellish / hideous / hurt / impractical / inferior / injury / insult
        insulting / intolerable / irritating / lame / leak / lifeless / lonely / lousy / menace / mess
        miserable / misery / mosquito / nightmare / noise / noisy / nuisance / outrage / outrageous / pain
        pathetic / poisonous / pricey / prison / punish / punishment / rip off / ripoff / robbery / rotten
        rude / scratch / shambles / shameful / slow / slower / smelly / soggy / soulless / sterile / stink
        stress / stressful / suffer / tedious / theft / tiring / torture / toxic / tragedy / trap / ugly
        unacceptable / unfair / unjust / unsafe / unworkable / vandalism / war / wasp / waste / wet / worse
        worst / yawn / battlefield / break my heart / can not stand / glad to be rid / glad to see it go
        good riddance / happy to see it go / hate / heartbreaking / loathe / shake for hours / zombie
        delighted to see the / glad to see the / glad to see them / happy to see the / happy to see them
        not miss it / not miss them
        """,
    ),
    (
        Kind.ECHO,
        1.0,
        """
        me too / so do i / same here / neither do i / me neither / nor do i / could not agree more
        share that view / share this view / share his view / share her view / share their view / i do too
        feel the same / think the same / feel the same way / see it the same way / of the same mind
        same opinion / their way / follow them / with them on this / with them / one of them / one of those
        among them / count me among them / in that camp / neither have i / nor have i / so have i / as do i
        so am i / as am i / likewise / ditto / thinking along the same line / the feeling is mutual / seconded
        second that / share the sentiment / share those / share that / share it / share their / share his
        share her / in the same boat / join them / joined them
        """,
    ),
    (
        Kind.ECHO,
        -1.0,
        """
        beg to differ / could not disagree more / see it differently / see things differently
        think differently / unlike them / the other way round / the other way around / quite the contrary
        on the contrary / quite the opposite / feel differently / of another mind / not one of them
        not one of those
        """,
    ),
    (
        Kind.OPINE,
        1.0,
        """
        think / feel / say / reckon / consider / find / see / view / regard / hold / maintain / know / imagine
        assume / conclude / call / expect / understand / argue / claim / insist / state / declare / admit / want
        take / suppose / see how / mean / see why / have to say / lie outside / lie inside / lie within / lie in
        lie between / lie at / lie on / would say / convinces / buying that / idea / notion / suggestion
        claim that / view that / as a matter of fact / find it / in fact of / look at the fact / make a case for
        matter of fact / share / the fact / the truth about
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
        tossup / coin flip / flip a coin / inconclusive / in between / half and half / not take a stance
        no stance / not lean / no lean / equally good / equally convincing / equally plausible / equally likely
        equal to me / both equal / halfway / half way / at zero / call it a draw / without a preference
        level pegging / no stronger either / square in the middle / exactly neutral / perfectly balanced
        no firm opinion / no firm view / remain unsure / remain undecided / not have a view
        not have an opinion / not have a stance / do not have a view / do not have an opinion
        do not have a strong / not settled / have not settled / not come down / both way
        neither here nor there / neither for nor against / not for or against / evenly split
        split down the middle / evenly divided / of two mind / in two mind / not qualified to say
        can not choose / can not judge / need more evidence / need more information / not enough information
        not enough evidence to / too little to go on / no conclusion / not reach a conclusion
        not reached a conclusion / not made up my mind / not pick / draw even / cancel out
        cancel each other out / indifferent / middle ground / midpoint / dead centre / dead center
        no firm conviction / lean neither / could be either / maybe maybe not / perhaps perhaps not
        not committed / sitting this one out / no dog in this fight / no horse in this race
        pulled in two direction / pulled in both direction / one way or the other / one way or another
        not form an opinion / not formed an opinion / not formed a view / at a loss / unresolved / neither camp
        tilt towards one or the other / lean towards one or the other / one or the other / not leaning towards
        not lean towards either / no way to tell / no way of telling / no way to know / no way of knowing
        impossible to say / impossible to tell / above my pay grade / all the same to me / anybody's guess
        anyone's guess / as good as the other / as many for as against / ask me again / ask me tomorrow
        both argument / both camp / bring myself to take either / can not call it / can not make up
        can not pick / can not say whether / can not say which / change my mind every / change my mind twice
        come out even / come out with nothing / could not care less / could not pick / could not say
        could not say if / could not say whether / could not say which / dead even / dead heat / deadlock
        dither / dithering / do not know if / do not know what / do not know whether / do not know which
        even out / evenly matched / every argument in favour / exactly in between / flip flop / flip flopping
        for every argument / go round in circle / go to and fro / god knows / going round in circle
        goodness knows / half a dozen of the other / half of me / hang in the balance / hard to choose
        have none to give / have not the faintest / haven't a clue / hear more / heaven knows
        how should i know / i pass on picking / impossible to choose / in no position to / it depends
        leave me undecided / left undecided / makes no odds / neck and neck / need to hear more / nil nil
        no clearer / no earthly idea / no fixed opinion / no fixed view / no leaning / no overall winner
        no settled view / no winner / no wiser / none the wiser / none to give / not clear
        not convinced either way / not for me to / not in a position to / not know what to / not know which
        not nailed down / not picking / not sure either / not sure what to / not sure which / not take either
        not the foggiest / on alternate days / one half of me / one way and the other / oscillate / part of me
        pendulum / plus and minus / pro and con / pull me one way / pulled both ways / remains to be seen
        round and round / same difference / scale will not tip / scales balance / see saw / seesaw / six of one
        so far so undecided / some day yes / stalemate / stand between / still thinking / still weighing
        swing either way / swing voter / time will tell / to and fro / too close to call / unclear / undecidable
        undetermined / unsettled / up in the air / vacillate / want to hear more / weigh one against
        weighing up / who am i to say / who can say / withholding judgement / withholding judgment
        your guess is as good as mine / zero zero / argue both / argue either / as likely as not / can not form
        choose a side / choose side / conflicted / could argue both / do not know enough / drawn both way
        drawn to both / either camp / either direction / either side / equal measure / equal weight
        equally torn / equally unconvinced / equally unsure / feel strongly / for and against / genuinely torn
        have yet to / hold judgement / hold judgment / hold my judgement / hold my judgment / in equal measure
        keep changing my mind / keep going back / keep out of it / keep switching / know too little
        maybe yes maybe no / neither belief nor disbelief / neither one nor the other / neither yes nor no
        no inclination / no preference either / not informed enough / not know enough / not more convincing
        of both mind / one side and the other / out of my depth / perfectly torn / sometimes yes sometimes no
        stay out of it for now / stay out of this one / take a side / unable to choose / unable to decide
        unable to judge / unable to tell / waiting for / waiting to hear / weigh equally / weigh the same
        withhold my judgement / withhold my judgment / without a side / without a stance / without a view
        without an opinion / yes and no / yet to be convinced either way / yet to decide / yet to make up
        every time i make / not settle the matter / the day after i / the next day / the next minute
        the next moment / a wash / am divided / am puzzled / am split / am stuck / be a draw / be a wash
        be stuck / call it a tie / depend on the / end in a draw / have no preference / i shrug / in the balance
        is a draw / is a tie / it depend / it is a wash / mixed up about / no preference
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
        correct me if / could be fooling myself / do not quote me / for now / for the moment / forced to
        happy to be corrected / if i had to / if i had to bet / if you force me / if you push me
        jury still out / keep a question mark / like more data / like to see more / might be fooling myself
        no expert / not an expert / not bet my / not bet the house / not call it settled / not go as far
        not go so far / not go that far / not nailed / not prepared to go / not put money on / not ready to
        not set in stone / not settled / not stake my / not swear to it / open to correction / question mark
        stand to be corrected / strictly speaking / subject to / take it or leave it / until i see more
        what do i know / with a pinch of salt / without going / would like to see more / would not swear to
        been wrong before / could be mistaken / few doubt remain / have question / i could be wrong
        i may be wrong / i might be wrong / leave room for / leave some room / little confidence
        may be mistaken / maybe i am wrong / might be mistaken / no great conviction / no guarantee
        no more than that / not 100 % / not a hundred percent / not all the way / not more than that
        not much more / not one hundred percent / not with certainty / not with confidence
        not with great confidence / not with much confidence / nothing more than that / room to be wrong
        some doubt remain / some room for / still have question / who know / with reservation
        without being certain / without being sure / without certainty / without conviction
        without great conviction / without much confidence / without much conviction / wrong before
        i still have a few doubt / i still have doubt / i still have some doubt / still have a few doubt
        still have some doubt
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
        impossible that / opposite of / can not find / could not find / devoid of / far cry from / free of
        in no sense / minus any / never found / never seen / not a bit / not an iota / not by any stretch
        not close to / not in the least / not in the slightest / not one bit / not one iota / not remotely
        nowhere close to / short on / void of / absence of / deny that / far too few / in no shape / little
        no good / no real / not exactly / not much / not precisely / precious little / rarely / seldom
        very little / without any
        beyond me how / beyond me why / can not say why / can not tell why / do not know anybody
        do not know anyone / do not know how / do not know why / no clue how / no clue why / no idea how
        no idea why
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
        unwavering / vehemently / adamant / adamantly / all day long / any day / any day of the week
        beyond a shadow / blind not to / can not help but / categorically / could hardly be more
        could not help but / could scarcely be more / crazy not to / die hard / die on this hill / emphatically
        end of / end of debate / end of discussion / enough said / every single time / every time / fervent
        fervently / fool not to / foolish not to / for good / hand on heart / hard not to / hardcore
        have to be blind not to / impossible not to / literally / mad not to / mark my word / more than anything
        never once / no but / no ifs / no matter / nothing can / nothing will / nuff said / on this hill
        once and for all / resolutely / resounding / resoundingly / rock solid / shadow of a doubt
        silly not to / staunch / staunchly / steadfast / steadfastly / stupid not to / through and through
        till i die / to my dying day / to the hilt / unconditionally / unequivocally / unhesitatingly
        unreservedly / vigorous / vigorously / wholehearted / with absolute certainty / with all my heart
        with certainty / with complete conviction / with every fiber / with every fibre / without exception
        bar none / by far / convinced beyond / far and away / ferociously / fiercely / full force
        not a shadow of doubt / not the slightest / not the slightest doubt / shadow of doubt / slightest doubt
        staunch supporter / the slightest / without any doubt / without the slightest doubt / how else
        what else / where else
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
        would not bet / not bet / weakly / for what it is worth / faintly / faint / soft / softly
        nothing dramatic / lukewarm / not strongly / almost / nudge / nudged / edge / edges / a small
        small yes from me / a small yes from me / small yes / mild yes / cautious yes / small no / mild no
        only mildly / small question mark / not firmly / nothing stronger / quietly / up to a point
        with caveat / with reservation / with some reservation / not ruling out / not rule out
        not convinced enough / could be / some doubt / few doubt / provisional / provisionally / by a whisker
        by a hair / narrowly / best guess / gut feeling / conceivably / arguably / potentially / just about
        ever so slightly / not far from / at a push / if pushed / if pressed / if forced / hesitant / hesitantly
        reluctantly / drift / drifting / inching / a tiny bit / tiny bit / a whisker / lil / a lil / a notch
        a step / a few degree / a lean / a tilt / on the whole / erring / err / a bit of / a hint / a hint of
        a mite / a sliver / a small sum / a smidgeon / apparently / as far as / at least most of
        at least mostly / began to / beginning to / by a small margin / by and large / can not quite
        cannot quite / closer to / comparatively / could well / creeping / daresay / ever so / fairly / fancy
        feel like / feels like / for the most part / generally / getting warmer / gradually / half inclined
        half tempted / has the edge / i daresay / i fancy / i gather / i imagine / i think probably
        i would say / if anything / if only just / if only slightly / if slightly / iffy / in a sense / in a way
        in some respect / in some way / just slightly / largely / loath / look to me / looks to me
        marginally cleaner / might well / mild preference / more likely / most likely / most of the time
        mostly / nearly / not dead set / not far off / not so much / now and then / occasionally
        on the fence but / one or two / one small / only a little / only slightly / prefer slightly / presumably
        probs / prolly / quite likely / rather / reasonably / relatively / roughly / seemingly / slight edge
        slight preference / slowly / small bet / small margin / softly softly / some extent / some of the
        sometimes / sooner / sort of leaning / sound like / starting to / strike me as / strikes me / supposedly
        to a point / to some degree / vaguely / weak preference / would rather / would say / would sooner
        40 60 / 60 40 / a bit less / a bit more / a bit over / a bit under / a little less / a little more
        barely on / by a little / by a nose / forty sixty / hair s breadth / half hearted / half heartedly
        halfheartedly / if only by a little / just barely / just over / just slightly over / just under
        less inclined / low key / lowkey / marginally less / marginally more / more inclined / ngl maybe
        not great confidence / not with / one notch / only a bit / qualified / sixty forty / slightly less
        slightly more / slim margin / small lean / soft spot / somewhat less / somewhat more / very slight
        very slightly / weaker than / with a grain / with caution / with hesitation
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
        message / their point / the point / reader / crowd / those who / ppl / whoever / anyone who
        lot of people / their claim / his claim / her claim / claim of the stranger / headline / the account
        this guy / that guy / guy / opinion of others / the other side / video / influencer / politician
        brother in law / co worker / coworker / doctor / feed / grandfather / grandma / grandmother / grandpa
        journalist / media / my boss / my brother / my dad / my daughter / my feed / my gran / my husband
        my mom / my mum / my roommate / my son / my wife / nephew / niece / op / podcast / preacher / professor
        reddit / roommate / the internet / the news / the sender / the speaker / timeline / a doctor
        another stranger / classmate / customer / everyone around me / everyone else / family / flatmate
        half of my / housemate / my aunt / my barber / my boyfriend / my colleague / my cousin / my doctor
        my father / my friend / my girlfriend / my kid / my mother / my neighbor / my neighbour / my parent
        my partner / my sister / my teacher / my whole family / nurse / parent / pastor / priest
        student of mine / taxi driver / the barber
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
        according to me / as far as i am concerned / by my lights / for me / for my part / from where i stand
        if you ask me / in my book / in my experience
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
        my old view / my former / my earlier / for a long time i / for a while i / a few year ago / a month ago
        all my life until / as a kid / as a student / before my / before this / before today / came in believing
        for most of my life / grew up / i came to this / i grew up / in my day / in my youth / raised
        some time ago / started reading / took for granted / took it for granted / walked in / when i was young
        """,
    ),
    (
        Kind.NOW,
        1.0,
        """
        now / nowadays / these days / today / at present / currently / by now / at this point / since then
        still / i still / as before / have become / have come / after reading / having read / after seeing
        having seen / after this tweet / from now on / i have been / any longer / any more
        last month i started / meanwhile / no more / since my / these past day
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
        grew out of / came to my senses / cured me / cured me of that / i know better / know better now
        learned better / no longer so / outgrew / put me right / saw the light / seen the light
        set me straight / wised up
        """,
    ),
    (
        Kind.CONTRAST,
        1.0,
        """
        but / however / yet / nevertheless / nonetheless / even so / that said / having said that / all the same
        then again / on the other hand / on the other / in reality / in truth / in fact / actually
        despite that / despite this / despite all that / regardless / only to / at the same time i / alas
        at the end of the day / be that as it may / come to think of it / even then / except / for all that
        in the end / mind you / notwithstanding / on closer inspection / on reflection / on second thought
        only thing is / problem is / tbf / the fact remains / the problem is / the truth is / trouble is
        when all is said and done / yet still
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
        on the one hand / on one hand / fair play to / granted that / hats off to them / i accept that
        i appreciate / i can appreciate / i do not deny / i feel for / i respect / i sympathise / i sympathize
        i take that point / i take the point / i will give / it may be that some / no one denies / true enough
        yes there
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
        put me down / call me / as for me / hence / consequently / my answer / as things stand
        at the end of the day / conclusion / final answer / hence my / i am left / i come down / i end up
        i land / i stand / in summary / long story short / looking back / my take / my two cents / net net
        on reflection / on the whole / so i / so my / so no / so yeah / so yes / summing up
        taking everything into account / that is why / that is why i / the upshot / tl dr / tldr / to conclude
        today i stand / verdict / weighing it up / when all is said and done / which is why i
        """,
    ),
    (
        Kind.RHETORICAL,
        1.0,
        """
        how can anyone / how could anyone / how can people / how do people / how can you / how could / who still
        who would / who could / who in their right mind / who can / why would anyone / why would / why do people
        why do they / why do so many / why are people / why does anyone / why do some people / when will people
        do people really / do people actually / do you really / does anyone really / does anyone still
        does anyone actually / does anybody really / does anybody still / are people really / are we supposed to
        since when / is anyone really / are you seriously / do they seriously / seriously / how is anyone
        how on earth / why on earth / what kind of / how many more / am i supposed to / are we really / really
        who believe / who think / who actually / who really / is there anyone / is there anybody
        has anyone ever / have you ever / when did / is there any / is there any doubt / is there anything
        did you ever / do they think / do we need / do we really need / do you honestly / do you think
        how come / how is that / how would / in what / in what world / on what planet / really what
        since when do / what evidence / what good / what has / what is the point / what proof / where are the
        where is the / who ever heard / who need / who on earth / who want / whoever heard / why should
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
        change the subject / abstain from / against my policy / ask someone else / between me and
        can not complete / can not continue / can not proceed / can not respond / can not take a position
        content policy / do not want to answer / do not want to say / do not want to talk about / do not wish to
        error / i abstain / i am busy / i can not do that / i must refrain / i plead the fifth / i will not say
        i will skip / insert your / leave me out of / lips are sealed / my lip are sealed / no answer from me
        no further comment / not able to provide / not able to share / not able to take / not at liberty
        not discuss that / not going there / not going to discuss / not going to say
        not interested in discussing / not saying anything / not talk about that / not telling / not willing to
        output length / pass next / plead the fifth / prefer to stay out / refrain from / say nothing on
        skip this one / stay out of it / stay out of this / that is private / unable to complete
        unable to continue / unable to discuss / unable to engage / unable to generate / unable to give
        unable to offer / unable to respond / unable to share / violates / will not be drawn / won't be drawn
        would not like to say / have nothing to say / missed the message / not be giving / not giving an opinion
        nothing to add / nothing to say / nothing to say about / not respond to / prefer not to respond
        rather not get into / rather not respond
        """,
    ),
    (
        Kind.ROLE_BREAK,
        1.0,
        """
        language model / as an ai / i am an ai / an ai assistant / ai assistant / artificial intelligence
        do not have personal / not have personal / not hold personal / no personal opinion / no personal belief
        my training data / my programming / openai / as a chatbot / virtual assistant / not capable of having
        out of character / ai model / an ai / an assistant / as a computer program / as a language
        as a machine / as a neutral assistant / break character / computer program / do not form opinion
        do not possess personal / i am a language / i do not have belief / i do not have opinion
        knowledge cutoff / large language / my knowledge cutoff / not form opinion / not have belief
        not possess personal / out of this role / role play / stay in character / step out of / step out of role
        this role play / trained by
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
    chang cool drift drop fall go gone mov ros shift slid slip soften swing swung turn
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

#: Stems of liking and disliking a thing rather than a statement.
AFFECTION = """
    ador dislik enjoy hat lik lov miss
    """

#: What a bare assent is made of: "absolutely", "of course".
BARE_YES = """
    100 % absolutely all certainly completely cours definitely doubt entirely exactly for fully hundr indeed of sur
    the totally truly way without wholly
    """

#: Nouns of stance, which verbs of loss turn round and verbs of waning soften.
STANCE_NOUNS = """
    acceptanc belief certainty confidenc conviction disbelief doubt enthusiasm faith opposition rejection reservation
    scepticism skepticism support suspicion trust
    """

#: Verbs of loss.
LOSS = """
    crumbl dead died disappear dispel dissolv evaporat fad gone lost melt remov resolv shatter vanish
    """

#: Verbs of waning.
WANING = """
    dampen dent dwindl erod lessen shaken shak shrink shrunk soften wan weaken wobbl
    """

#: Words that say what a percentage measures.
ODDS = """
    believ certain chanc confident convinc giv lik likelihood likely odd persuad possibility probability probabl
    sur true
    """

#: Words that compare or rank.
COMPARING = """
    ahead bad beat best better choos edg favorit favourit giv good great inferior los lose more nothing over pick
    prefer rather sooner superior team than tops vs win winner wors worst
    """

#: Words whose presence in a claim or clause says nothing about its subject.
WEAK_WORDS = """
    a an the of by in on at to for from with as than and or is are was were be been being am do does did have
    has had can could will would shall should may might must it its they them their he she his her someone
    somebody one there that this these those rather usually time about very rapidly more most worldwide
    irregularly during if so when which who what not never no neither nor cannot any some all
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
    gone gone / children child / yes yes / less less / this this / does do / did do / done do / unless unless
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
    "cos": "because", "tho": "though", "rn": "now", "gotta": "have to",
    "single digits": "5 %", "double digits": "15 %", "wouldnt": "would not",
    "arent": "are not", "whats": "what is", "50/50": "fifty fifty", "50-50": "fifty fifty", "aren't": "are not",
    "t-rex": "trex", "tyrannosaurus rex": "trex", "t rex": "trex", "t. rex": "trex",
}  # fmt: skip
