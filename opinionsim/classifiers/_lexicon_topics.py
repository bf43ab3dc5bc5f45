"""World knowledge of the lexicon classifier: words that stand for, imply or exclude one another.

A line is one entry; words are parted by ``/`` and compared by stem, so one form of a word stands for all. A line may be
continued with a backslash.
"""

from __future__ import annotations

#: Contrasts that evaluate: a claim that puts its subject on the left favours it. Read like ``OPPOSITES``.
EVALUATIONS = """
    raise / increase / boost / lift / improve / enhance / better / help / benefit / useful / good / great / win \
        / strengthen / support / aid / enrich / advance / build / encourage / foster / nurture / sharpen / heal / \
        protect / important / essential / valuable / worthwhile / vital / nice / enjoy | reduce / harm / hurt / \
        worsen / worse / damage / bad / useless / hinder / ruin / waste / pointless / undermine / lose / weaken / \
        destroy / wreck / toxic / poison / spoil / impair / erode / disrupt / distract / distraction / nuisance / \
        stifle / rob / overrated / unnecessary
    ruin / spoil / wreck / kill / destroy / mar / blight / sour | improve / survive / enhance / harmless / enjoy / \
        better / save / intact / same
    safe / harmless | dangerous / harmful / risky / unsafe / hazard / hazardous / menace / deadly
    easy / simple | hard / difficult
    healthy / wholesome / nutritious | unhealthy / junk / fattening / sickening
    allow / permit / legal / legalise / legalize / let / welcome / tolerate / entitled / permission / admit / \
        free to choose | ban / forbid / prohibit / illegal / outlaw / out / bar / exclude / restrict / confiscate / \
        lock / block / leash / outside / crackdown / kick
    keep / preserve / retain / save / maintain / protect / continue / stay / remain / cherish / hold | abolish / \
        scrap / rid / ditch / axe / eliminate / remove / drop / end / stop / bin / discontinue / phase / dump / \
        away / go / die / outdated / relic
    free / gratis / complimentary | fare / pay / charge / ticket / fee / fares / paid / toll / price / cost / \
        chip / euro / coin
    mandatory / compulsory / obligatory / require / oblige / law | optional / voluntary / choose / \
        choice / pick / freedom / decide / themselves
    accept / take / honour / honor | refuse / turn / decline / cashless / reject
    cheap / affordable / bargain | expensive / costly / dear / pricey
    fast / quick / speedy | slow / sluggish
    productive / efficient / effective / focus / concentrate / output | lazy / tired / drowsy / yawn / yawning / \
        exhausted / inefficient
    fair / just | unfair / unjust / discriminate
    clean / tidy | dirty / messy / filthy
"""

#: Two sides of one contrast a line: words left of ``|`` agree with each other and contradict those to the right.
OPPOSITES = """
    flat / disc / disk / pancake / plane / level / firmament / dome / edge | round / sphere / spherical / globe / \
        ellipsoid / curve / curvature / ball / oblate / spheroid / bulge / orb / circumnavigate / hull / marble / \
        orbit / ship / mast / squashed / lumpy / egg / potato / equator / satellite / eclipse
    hot / burn / warm / scald / heat / sear / scorch / blister / boil / toasty / scalding / blazing / melt / cook / \
        roast / bake / oven / char / singe / sting / warmth / kettle / fry / grill | cold / cool / freeze / frozen / \
        icy / ice / chill / chilly / frosty / frost / snow / frostbite / shiver / tingle / fridge
    high / higher / above / over / exceed / more / raise / rise / increase / grow / lift / boost / gain / upward | \
        low / lower / below / under / beneath / less / fewer / reduce / decrease / fall / shrink / drop / cut / short
    real / genuine / result / fact / actual / melt / thermometer / glacier / drought / flood / physics / measure \
        / milder / heatwave / record / emission / data / carbon / greenhouse | hoax / fake / conspiracy / staged / \
        plot / invented / invention / scam / fabricated / fiction / lie / cover / faked / fraud / propaganda / \
        scheme / studio / filmed / cabal / swindle / concoct / cook / orchestrated / agenda / racket / pretext / \
        puppet / elite / control / steered / scare
    coexist / overlap / same / together / alongside / meet / met / encounter / contemporary / share / simultaneous / \
        side / saddle / chase / hunt / neighbour / beside | before / after / later / apart / extinct / separate / \
        million / extinction / gap / between / predate / vanish / gone / miss / asteroid / meteor / aeon / eon / \
        ago / wiped / layer
    communicate / contact / seance / whisper / haunt / sign / visit / presence / beyond | silence / silent / gone / \
        imagination / coincidence / grief / charlatan / pipe / vanish / nothing / wish / hallucinate / comfort / \
        rest / invoice / con
    predict / foretell / foresee / prophecy / prophetic | coincidence / superstition / skin / fold / bend / folding / \
        bending / guess / random / chance / grip / vague / charlatan / entertainment / carnival / gene / nothing / \
        horoscope / cookie / womb / muscle
    birth / born / womb / ultrasound / scan / arrive / reflex / breathing / organ / neuron | empty / hollow / blank \
        / later / without / hole / void
    in / inside / within / part / belong / soil / capital / passport / congress / capitol / federal / president | \
        outside / foreign / abroad / separate / independent / visa / border / apart / own / embassy
    alive / living | dead
    open / opening / opened / accessible | close / closed / shut / locked / closing
    inside / planted / rigged / demolition / explosive / bomb / blast / charge / detonate / controlled | plane / \
        jet / hijack / terrorist / airliner / crash / fuel / airplane
    start / begin | end / finish / stop
    wild / grow / meadow / wildflower / clover / dandelion / bee / bumblebee / butterfly / hedgehog / insect / tall / \
        untouched / rewild / pollinator / biodiversity / nature | short / mow / mower / mown / tidy / trim / neat / \
        neglect / cut / clip / manicured / stripe / lawnmower / messy / jungle
    early / dawn / sunrise / lark / alarm | late / sleep / lie / owl / midnight / snooze / rested / bed
    urban / city / town | rural / country / countryside / village
    land / walk / visit / touch / foot / footprint / flag / reflector / mirror / laser / \
        rock / sample / crew / rocket / bring | film / stage / fake / studio / hollywood / kubrick \
        / soundstage / shadow / staged / prop / radiation / actor / nevada / desert
    cause / lead / produce / trigger | prevent / stop / cure
    win / beat | lose
    work / function | fail / broken
"""

#: Words of which only one can hold.
EXCLUSIVES = """
    red / blue / green / yellow / orange / purple / black / white / pink / grey / gray / brown / crimson / \
        scarlet / azure / violet
    kenya / hawaii / nigeria / indonesia / canada / mexico / honolulu / nairobi / england / germany / france / \
        china / russia / india / africa / japan / brazil
    usa / kenya / canada / mexico / england / france / germany / china / russia / cuba / australia
    monday / tuesday / wednesday / thursday / friday / saturday / sunday
    spring / summer / autumn / winter
"""

#: Words that stand for each other in restatements of a claim.
SYNONYMS = """
    bicycle / bike / cycle / cycling / cyclist / biking
    wheel / tyre / tire / axle / wheeled / wheeler
    human / people / person / man / men / mankind / humanity / caveman / cavemen / ancestor / humankind / homo / \
        hunter / primate / us / our
    trex / tyrannosaurus / dinosaur / dino / tyrannosaur / rex / beast / lizard / predator / reptile / jaw
    dead / deceased / depart / ghost / spirit / grave / afterlife / beyond / passed / died / ancestor / loved / \
        buried / late / departed / soul
    communicate / talk / speak / hear / contact / reach / answer / medium / seance / message / listen / \
        conversation / chat / spoke / reply / respond / psychic / ouija / board / whisper / voice
    palm / palmistry / palmist / hand / line / crease / teller / finger / thumb / reader
    future / fate / destiny / fortune / tomorrow / ahead / lottery / coming
    predict / foretell / foresee / forecast / read / reveal / prediction / foretold / tell / hint
    astronaut / nasa / apollo / armstrong / aldrin / crew / they / we
    moon / lunar / luna
    land / landing / walk / foot / footprint / walked / touchdown
    unemployment / jobless / unemployed / work / joblessness / job / worker / workforce / employed / figure / rate
    jewish / jew / holocaust
    murder / kill / exterminate / genocide / slaughter / massacre
    nazi / germany / hitler / german
    tower / twin / wtc / skyscraper
    obama / barack
    usa / america / american / states / country / nation / union
    washington / dc / capital / district / columbia / whitehouse
    born / birth / newborn / baby / infant / midwife / cradle / toddler
    brain / skull / cortex / organ / head
    fire / flame / candle / blaze / campfire / bonfire / stove / fireplace / match / torch
    sky / overhead / heaven / firmament
    earth / planet / world / globe / horizon
    warming / warm / climate / temperature / glacier / heat / weather / winter / summer / ice
    output / productivity / result / work / productive
    school / pupil / classroom / class / student / lesson
    child / kid / pupil / student / teenager / teen / youngster
    government / politician / state / minister / ministry / authority
    tip / tipping / gratuity
    uniform / blazer / jumper / tie / crest / dress
    phone / mobile / smartphone / device / handset / cell / screen
    cash / coin / banknote / note / bill / money
    shop / store / till / cashier / retailer / shopkeeper / business
    bus / coach / passenger / ride / rider / transit / tram
    lawn / grass / turf / meadow / yard / garden
    subtitle / caption / subtitled / reading / text / read
    dubbing / dub / dubbed / voice / synchronise / spoken / actor
    camping / camp / tent / canvas / campfire / campsite / outdoors / caravan
    hotel / room / breakfast / sheet / bed / minibar / reception / suite / lobby / bath
    vinyl / record / lp / groove / turntable / disc / needle / analogue / analog / stylus
    streaming / stream / digital / file / playlist / spotify / phone / lossless / app
    voice / spoken / recording / audio / hearing / talking / tone / ramble / rambling
    text / typing / type / written / write / writing / line / texting / typed
    spoiler / ending / twist / spoil / leak
    film / movie / story / cinema / series / plot / show / book
    early / dawn / sunrise / alarm / five / six
    dog / puppy / pup / hound / canine
    cat / kitten / feline / kitty
    pet / dog / cat / animal
    car / vehicle / driving / drive / driver / motorist / automobile
    train / rail / railway
    plane / fly / flight / flying / airport / airline
    coffee / espresso / latte / caffeine / cappuccino / brew
    tea / cuppa / teapot / chai / oolong / matcha
    book / novel / paperback / hardback / paper / print / printed / page
    ebook / kindle / ereader / ereaders / reader / screen / tablet / digital
    audiobook / narrator / listening
    remote / home / telework / telecommute / wfh
    office / desk / workplace / cubicle / commute
    beach / sea / seaside / sand / ocean / coast / swim
    mountain / hike / hiking / alpine / summit / peak / trail
    summer / heat / july / august / sunshine / sun
    winter / snow / december / january / cold / skiing
    city / urban / town / downtown
    countryside / rural / village / country / farm
    exam / test / grade / grading / mark
    homework / assignment / worksheet
    meat / steak / beef / burger / bacon / pork / chicken
    vegetarian / vegan / veggie / plant / vegetable / tofu / lentil
    zoo / cage / captivity / enclosure
    museum / gallery / exhibition
    library / librarian
    holiday / vacation / trip / getaway
    game / gaming / gamer / console
    handwriting / pen / pencil / notebook / ink / longhand
    typing / keyboard / laptop
    breakfast / cereal / toast / porridge
    pizza / pineapple / topping
    gym / workout / exercise / treadmill / weights
    run / running / jog / jogging / runner
    swimming / swim / pool
    music / song / tune
    nap / doze / siesta
    tax / levy
    vaccine / jab / shot / vaccination
    scooter / escooter
    rent / renting / tenant / landlord
    gift / present
    email / mail / inbox
    online / web / internet / virtual
    sugar / sweet / candy
    clock / daylight / dst
"""
