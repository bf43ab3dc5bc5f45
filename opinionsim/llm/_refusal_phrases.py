"""Phrases in which chat models refuse or leave their role, as patterns of lower-case text.

``_`` stands for up to two words between two others, ``~`` for up to six. Every phrase begins at the beginning of a
word. The tables whose name ends in ``_OFF`` hold what follows one of ``NEGATIONS``.
"""

from __future__ import annotations

#: Negations of what the speaker is willing or able to do, but not of what they can believe.
NEGATIONS = (
    r"(?:can't|cannot|can not|won't|will not)(?: and (?:can't|cannot|can not|won't|will not))?",
    r"couldn't|wouldn't|shouldn't|(?:don't|do not) want|never going",
    r"(?:don't|do not) (?:think|believe) (?:that )?(?:i (?:can|should|could|will)|it's right|it is right|i'm)",
    r"not_(?:going|willing|able|prepared|comfortable|ready)|unable|uncomfortable|refuse|hesitant|reluctant",
    r"(?:don't|do not|doesn't|not) feel_(?:comfortable|right|good|able)",
    r"not(?= (?:doing|writing|creating|playing|posting|producing|generating|answering|simulating)\b)",
    r"(?:rather|prefer|choose|choosing|chosen|want) not|declin(?:e|ing) to|(?:have|need|going|must)_(?:decline|refuse)",
)
_NOT_OF_BELIEF = r"(?!,?(?: \w+)?(?: to)? (?:believe|understand|imagine|see|help but|stand|tell))"
NOT = rf"(?:{'|'.join(NEGATIONS)})\b{_NOT_OF_BELIEF}"

_AN_AI = r"(?:ai|a\.i\.|artificial intelligence|(?:large |text |ai |computer )?(?:language )?model|chatbot)\b"
#: No words after "AI" that make a person of it, as in "as an AI researcher".
_NO_PERSON = (
    r"(?!(?: and \w+)?[ -](?:research|engineer|enthus|skept|scept|student|person|guy|fan|developer|expert|prof|ethic"
    r"|optim|hater|consult|safety|special|scien|artist|nerd|geek|would|might|could|did|does|wrote|says|said"
    r"|citizen|parent|teacher|employee)\w*)"
)
_ROLE = r"(?:characters?|persona|role-?play(?:ing)?)"
_WRITE = r"(?:writ|creat|generat|produc|compos|draft|craft)(?:e|es|ing|ting)?"
_TEXT = (
    r"(?:posts?|tweets?|content|messages?|statements?|materials?|texts?|propaganda|misinformation|disinformation"
    r"|threads?|falsehoods|denial|something like|anything (?:that|which))\b"
)
_ADVERBS = (
    r"(?:,? in good conscience,?)?(?: (?:just|really|simply|actually|be|to|personally|comfortably|ever|even|help))*"
)
_BELIEFS = r"(?:beliefs?|opinions?|views?|convictions|stances?)\b"

#: Words in which the model speaks as itself or leaves its role.
BREAKS = (
    rf"as an? (?:\w+ )?{_AN_AI}{_NO_PERSON}|as (?:an|your) (?:ai )?assistant\b",
    r"(?:i'm|i am)(?<!if i'm)(?<!think i'm)(?<!me i'm)(?<!that i am)(?: (?:just|only|actually|really|simply|still"
    r"|in fact))*"
    rf" (?:an? )?{_AN_AI}{_NO_PERSON}",
    rf"(?:that )?i am (?:just |only )?an? {_AN_AI}{_NO_PERSON}",
    r"(?:i'm|i am|i was)_(?:claude|chatgpt|gpt-\S+|gemini|llama|mistral|qwen|deepseek|grok)\b",
    r"(?:made|developed|created|trained|built) by (?:anthropic|openai|google|meta|mistral|alibaba|deepseek|xai)\b",
    r"(?:don't|do not|can't|cannot) (?:actually |really )?(?:have|hold|form|possess|share) (?:\w+,? (?:or )?){0,3}"
    rf"(?:personal|political|human|genuine|subjective) (?:\w+,? (?:or )?){{0,2}}{_BELIEFS}",
    r"(?:don't|do not)(?: actually| really)? (?:have|hold|form) (?:any )?beliefs(?! about)\b",
    rf"(?:not able to|unable to|can't|cannot) (?:form|hold|have) (?:\w+ )?{_BELIEFS}",
    r"(?:i'm|i am) not (?:a|an) (?:real |actual |human )*(?:person|human being)\b(?! (?:who|to|that|of))",
    r"i have no (?:personal )?beliefs\b|(?:beliefs|opinions) of my own\b",
    r"my (?:content |safety |usage )?(?:guidelines|programming|policies)\b|content polic(?:y|ies)\b",
    r"(?:step|break|dropp?|leav|paus|exit|stopp?|end)(?:e|ping|ing)?(?: back| out| outside| away| down| from| of"
    r"| aside)*"
    rf"_{_ROLE}\b",
    r"(?:step|stepping)(?: back| out| outside| away)+(?: of| from)? (?:the|this|that|my)_(?:role|part|fiction)\b",
    rf"(?:set|setting|put|putting|lay)(?:_(?:role|{_ROLE})_aside| aside the (?:role|{_ROLE}))\b",
    rf"out(?:side)?(?: of)? (?:the )?{_ROLE}\b(?! (?:for|of) (?:me|him|her|them))|^ooc\b",
    r"(?:as myself|in my own voice)(?: (?:rather|instead|and not|here|for)\b|\W*$)",
)
BREAKS_OFF = (
    rf"~(?:{_ROLE}|this (?:role|scenario|simulation|exercise|prompt))\b",
    r"~(?:voice|voicing|portray(?:ing)?|embody(?:ing)?|impersonat\w+|simulat\w+|play(?:ing)?|take on)_(?:role|person"
    r"|part)\b",
    r"~simulat(?:e|ing)\b|~pretend to be (?:a person|someone|somebody|this)",
    r"_(?:fulfil+|comply with|complete|carry out|process|accommodate)_(?:request|prompt|task|instruction)s?\b",
    r"(?: to)? (?:assist|help)(?: you)? with(?:_(?:requests?|prompts?|tasks?)| (?:this|that|it|\w+ing))\b",
    r"(?: to)? (?:engage|participate|take part|continue)_(?:request|exercise|scenario)\b",
    r"~(?:write|writing|speak|speaking|post|posting) (?:\w+ )?as (?:if i was|if i were|a person|someone|somebody|this)",
    r"~(?:answer|respond|reply|write|speak|post|evaluate|react|continue)(?:ing)?(?: \w+)? as"
    r" (?!well|yet|if\b|i\b|a\b|an\b|the\b|it\b|you\b|they\b|long|soon|much|far|though|fast|often|\w+ly\b)\w+",
    r"~in (?:his|her|their|this person's) (?:name|voice)\b",
)
#: Words in which it declines to write, as a person seldom does.
UNWRITTEN = (
    r"(?:don't|do not) (?:write|create|produce|generate) (?:propaganda|misinformation|disinformation|content"
    r"|posts that)\b",
    r"(?:don't|do not) think (?:that )?(?:writing|posting|creating|producing) (?:this|that|it|such)\b",
    r"(?:rather than|instead of) writ(?:e|ing) (?:this|that|a|the)\b",
)
UNWRITTEN_OFF = (
    rf"{_ADVERBS} {_WRITE}\b(?! (?:another|much|off|(?:this|that|it|them) off|an? (?:long|single)))~{_TEXT}",
    rf"{_ADVERBS} {_WRITE} (?:about )?(?:that|this|it|one|these|those|such)(?: one| post| tweet| for you| here| down)?"
    r"(?=\W*$|,| because| since| as |\W+sorry| even| in )",
    r"~(?:putting|put)_(?:out there|into the world|into words|words in)\b",
)
#: Words in which it declines as a person may.
SOFT = (
    r"(?:uncomfortable|not comfortable|(?:not|don't) feel_comfortable)"
    r"(?=\W*$|_(?:(?!say)\w+ing|with (?:this|that) (?:one|request))\b)",
    r"feels? (?:wrong|uneasy|uncomfortable) (?:writ|to me|for me|post)|no comment\b|i(?:'ll| will) (?:have to )?pass\b",
    r"(?:i'll|i|i'd|i'm|must|have to|going to|need to|respectfully)_(?:declin(?:e|ing)\b(?! in)|refuse\W*$)",
    r"(?:sit|skip|leave|pass|sitting|skipping|leaving|passing|back)_this (?:one|turn)\b|turn (?:empty|blank)\b",
    r"(?:i'll|i will|going to|have to|like to|need to|want to) stop(?: here)?\b",
    r"(?:not|isn't|is not) something (?:that )?i(?:'m|'d|'ll| am| can| do| will| want| would)\b",
    r"i (?:don't|do not) (?:engage in|do) (?:that|this)\b",
    r"^(?:unable|cannot|can't|not able) (?:to )?(?:comply|assist|help|answer|write)\b",
)
SOFT_OFF = (
    rf"{_ADVERBS} (?:do|answer|comply|continue|proceed|engage|discuss|say|share|assist|help|go there|go on|go further"
    r"|go along with|keep going)(?:ing)?(?: (?:with|in|to))?(?: (?:this|that|here|further|any further|this one|that one"
    r"|your question|either))?(?:,? (?:here|sorry|thank you|i'm afraid))*\W*$",
    r"(?: to)? (?:do|doing|take|continue|answer|play)(?: \w+)? (?:this|that) one\b",
    r"(?: to)? (?:shar|tak|adopt|continu|engag|express|discuss)(?:e|ing)?_(?:belief|position|stance)\b(?! on theory)",
    r"(?: to)? (?:share|sharing|express|offer)(?: \w+)? (?:opinions|views|beliefs)\b",
    r"(?: to)? (?:pick|choose|give|select)(?: \w+)? (?:number|rating|option)\b|~(?:step-by-step|step by step)\b",
)
#: Offers and questions to whoever runs the model.
OFFERS = (
    r"(?:would you like|do you want|did you want|if you(?:'d| would)? (?:like|want|prefer)) (?:me to|i (?:can"
    r"|could))\b",
    r"if you(?:'d| would)? (?:like|want|prefer),? (?:i|we) (?:can|could)\b",
    r"let me know (?:if|how|what|which|whether) (?:you(?:'d| would) (?:like|prefer)|you (?:want|need) (?:me|a|an|any"
    r"|some"
    r"|help)|i (?:can|should)|this works|there's)\b",
    r"(?:happy|glad|pleased|willing|open) to_(?:help|assist|support)(?: you\b| with\b| if\b|\W*$|~(?:instead|other))",
    r"how (?:can|may) i (?:help|assist)(?: you\b|\W*$)|i can help (?:you|with)\b|(?:something"
    r"|anything) else (?:that )?i can\b",
    r"(?:could|can|would) you (?:please )?(?:clarify|specify|confirm|paste|resend|provide (?:the|more|me)|let me know"
    r"|share (?:the (?:post|claim)|more)|tell me (?:a bit )?more about (?:what|the|your|how)"
    r"|give me (?:some |a few |a bit )?more)\b",
    r"please (?:share|provide|paste|send|include|resend) (?:the|your|it|me)\b|which (?:post|claim|task"
    r"|of these) (?:should|would|do)",
    r"what (?:would you like me|would you like the|would you like to (?:see|do|talk)|do you want me|should i|tone are"
    r"|kind of"
    r" (?:post|tweet))|who is the audience\b|how it will be used",
    r"(?:i|we) hope this (?:helps|works|is what)\b|does (?:this|that) work for you\b",
    r"(?:things?|options?|ways?|what) (?:that )?i (?:can|could|would)_(?:do|offer|write|help)\b",
    r"^(?:sure|certainly|of course|absolutely|okay|ok|here(?:'s| is| you go))\b~(?:posts?|tweets?|response|reply"
    r"|version"
    r"|attempt|answer)\b",
    r"(?:wasn't|isn't|not) included in your message|(?:post|message|claim|text) (?:was|seems|appears)_(?:cut off"
    r"|missing|blank)",
    r"i (?:don't|do not) see (?:a|the|any) (?:post|message|claim|text)\b",
)
#: Talk about the task, and offers that a person may make: they say nothing but beside other phrases.
TASK = (
    r"role-?play|persona\b|(?:this|the|your|that|an?)(?: \w+)? (?:prompt|request|exercise|simulation)\b",
    r"research framing\b|(?:written|staying|stay) in character\b|this character\b|fictional frame\b|which task you\b",
    r"you(?:'d| would) like me to\b|you(?:'ve| have|'re| are)? (?:asked|want|told|asking) me (?:to (?:write|play"
    r"|pretend|act)|for)\b",
    r"asked to (?:write|play|pretend|act|state|produce|post)\b|(?:an alternative|a different approach)\b|asks me to\b",
    r"(?:happy|glad|pleased) to (?:write|draft|keep going|continue|provide|offer|explore|walk you|talk|discuss|explain"
    r"|share (?!my)|describe|work)",
    r"(?:another|other) (?:way|topic|task)s? (?:i|we|you)\b|(?:can|could) we (?:switch|try|choose|pick|talk about)\b",
    r"i (?:can|could),?(?: however,?| instead,?| still| also| certainly)? (?:outline|summari[sz]e|walk you|go over"
    r"|describe|explain"
    r"|(?:provide|offer|share)~(?:you|facts|information|overview|summary|sources|evidence|arguments))",
    r"i (?:can|could)_(?:instead|however)\b",
)
#: Words before a refusal that say nothing on the matter.
LEADS = (
    r"^(?:i'm|i am)? ?(?:so |very |really |truly )?(?:sorry|afraid)\b|(?:my )?apolog(?:i[sz]e|ies)\b|^(?:thanks"
    r"|thank you)\b",
    r"^(?:okay|ok|look|hmm|so|well|and|but|now)?,? ?i(?:'ve| have)?_(?:understand|appreciate|see|get|hear|notice"
    r"|reali[sz]e|recogni[sz]e|read)\b",
    r"^(?:i (?:want|need|have|would like|think it's important|feel i should)|i'd like|let me|to) (?:to )?(?:\w+ )?"
    r"(?:be|pause|flag|stop|honest|clear|upfront|transparent|say)\b",
    r"^(?:actually|hmm|okay|ok|hi|hey|sure|certainly|nope|no|sorry|before i|here's the thing|that said|honest answer)\b"
    r"|step by step\b|i should (?:note|say)\b",
)
#: Words of a stance of one's own.
STANCE = (
    r"i(?:'d| would)? (?:[\w']+ ){0,3}?(?:believe[ds]?|thinks?|thought|doubt|suspect|reckon|agree|disagree|reject"
    r"|dismiss"
    r"|trust|buy|lean|remain|stay|oppose|accept|side|changed my mind)\b"
    r"(?!~(?:important|right for|right thing|good idea|worth|better|careful|write|help))",
    r"(?:i'm|i am)_(?:convinced|sure|certain|s[ck]eptical|undecided|neutral|torn|inclined|leaning|persuaded|against"
    r"|negative|positive)\b",
    r"my (?:own |honest |initial )?(?:belief|opinion|view|stance|position|gut)\b|xyz\b",
)
#: Words that announce a text in the role.
ANNOUNCED = (
    r"here(?:'s| is)(?!~(?:instead|alternative|can|could)\b)(?:~|\W+)(?:posts?|tweets?|response|reply|version|attempt"
    r"|answer|take"
    r"|report|character)\b|(?:stay(?:ing)?|still|back) in character\b",
)

#: One of these words stands in every text that holds any of the above beside a negation; most answers hold none.
SIGNS = frozenset(
    """
    ai intelligence model chatbot assistant claude chatgpt gpt gemini llama mistral qwen deepseek grok anthropic openai
    google meta alibaba xai personal political genuine subjective beliefs opinions guidelines programming policies
    policy character characters persona role roleplay roleplaying fiction ooc myself voice person human propaganda
    misinformation disinformation content writing posting uncomfortable wrong uneasy comment pass decline declining
    declines declined refused refuse sit skip leave sitting skipping leaving passing back empty blank stop unable
    you'd know write continue adjust expand happy glad pleased willing assist help else clarify specify confirm paste
    resend details please share post posts claim task audience used hope things options ways here here's certainly sure
    included missing note disclaimer withheld redacted removed silent engage
    """.split()  # noqa: SIM905
)

#: Paragraphs that stand apart from the text proper: in brackets, or with one of these words before a colon.
ASIDE = (
    r"^\s*[-*_ ]*(?:\(.*\)|\[.*\])\W*$"
    r"|^\W*(?:(?:\w+'s |content |author's )?note|disclaimer|ooc|important|p\.?s)\b\W*:"
)
#: What such a paragraph says where it is no part of a post.
ASIDE_SAYS = (
    r"^\W*note\W*:|\b(?:post|tweet|text|content|views?|fiction\w*|simulation|role-?play|persona|character|ai|framing"
    r"|role)\b"
)
#: Whole replies, in brackets or of a few words, that say only that there is none.
NOTHING = (
    r"declin(?:e|es|ed|ing)\b|refus(?:e|es|ed|ing)\b|withheld|redacted|content removed|says nothing|stays silent"
    r"|no (?:post|response|answer|reply|comment|tweet|opinion)\b|not (?:post|posted)\b|without posting",
)
#: Refusals in other languages, at the beginning of a text or of its second clause.
ELSEWHERE = (
    # Spanish, Portuguese, Italian, French
    r"(?:no puedo|não posso|nao posso|non posso) (?:ayudar|escribir|cumplir|crear|generar|asistir|continuar|participar"
    r"|ajudar|escrever|criar|gerar|atender|aiutar|scrivere|creare|generare|soddisfare|rispondere a)",
    r"(?:como|en tant qu[e']|come|in quanto|soy|sou|sono|je suis)(?: ?une?| uma?| un)?(?: grande?| gran)? ?(?:modelo de"
    r" (?:lenguaje|linguagem)|modèle de lang|modello (?:linguistico|di linguaggio)|ia\b|int[eé]lig[eê]nc[ie]a? artific"
    r"|inteligencia artific|intelligen(?:ce|za) artific)",
    r"je ne (?:peux|pourrai|vais) (?:malheureusement )?pas (?:vous aider|aider|[eé]crire|r[ée]diger|cr[ée]er"
    r"|g[ée]n[ée]rer"
    r"|r[ée]pondre [aà] (?:cette|votre)|participer)",
    # German, Dutch
    r"(?:dabei|damit|hierbei) kann ich .{0,20}nicht (?:helfen|dienen)|(?:kann|werde|möchte) (?:ich )?.{0,50}nicht"
    r" (?:schreiben|verfassen|erstellen|nachkommen|erfüllen|helfen)",
    r"als (?:eine? |een )?(?:ki\b|ai\b|künstliche intelligenz|(?:ki-)?sprachmodell|taalmodel)"
    r"|ich bin (?:nur )?eine? (?:ki\b|sprachm)",
    r"(?:kan|wil) ik .{0,30}\b(?:helpen|schrijven|maken|voldoen)",
    # Russian, Polish, Turkish
    r"не (?:могу|буду) (?:помочь|написать|писать|выполнить|создать|продолжать)|как (?:языковая модель|ии\b"
    r"|искусственный инт)",
    r"nie mogę (?:pomóc|napisać|spełnić|tego zrobić|stworzyć)|yard\u0131mc\u0131 olamam|yazamam|oluşturamam",
    # Chinese, Japanese, Korean
    r"我?(?:无法|不能|不会|無法|不會)(?:协助|帮|写|撰写|提供|生成|完成|满足|创作|扮演|協助|幫|寫|滿足)",
    r"(?:作为|作為|我是|我只是)(?:一个|一個|一名)?(?:人工智能|ai|大?型?语言模型|語言模型)",
    r"(?:申し訳|すみません|恐れ入り|ごめんなさい).{0,60}"
    r"(?:できません|できかねます|いたしかねます|書けません|お応え)",
    r"(?:ai|人工知能|言語モデル)(?:言語モデル)?(?:として|ですので|なので)"
    r"|(?:ai|인공지능|언어 모델)(?:로서|이기|이므로)",
    r"(?:죄송|미안).{0,50}(?:도와|도움|작성할 수|제공할 수|생성할 수|응할 수|수행할 수)",
)
