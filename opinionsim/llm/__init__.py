"""Chat models, and everything between an agent's question and a model's reply.

Names are loaded on first use, because reading a store needs the journal's records but not LangChain.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.llm._budget import Budget as Budget, Call as Call, SharedBudget as SharedBudget, Usage as Usage
    from opinionsim.llm._call_name import REFLECT as REFLECT, REPLY as REPLY, SELECT as SELECT, CallName as CallName
    from opinionsim.llm._caller import CallSite as CallSite, RunCalls as RunCalls
    from opinionsim.llm._endpoint import Endpoint as Endpoint, NewCall as NewCall, ReplayOnly as ReplayOnly
    from opinionsim.llm._failures import Failure as Failure, classify_failure as classify_failure, wait_s as wait_s
    from opinionsim.llm._first_token import (
        first_token_shares as first_token_shares,
        without_log_probabilities as without_log_probabilities,
    )
    from opinionsim.llm._given import GivenReplies as GivenReplies
    from opinionsim.llm._journal import (
        Entry as Entry,
        EntryKey as EntryKey,
        Journal as Journal,
        MemoryJournal as MemoryJournal,
        Source as Source,
    )
    from opinionsim.llm._keys import ALLOWED as ALLOWED, allow_keys as allow_keys
    from opinionsim.llm._models import ModelClient as ModelClient, load_chat_model as load_chat_model
    from opinionsim.llm._own import in_process as in_process, module_of as module_of, own_model as own_model
    from opinionsim.llm._policy import Lane as Lane, Lanes as Lanes, Limits as Limits, RetryPolicy as RetryPolicy
    from opinionsim.llm._prices import (
        CacheRule as CacheRule,
        Price as Price,
        PriceTable as PriceTable,
        Rebate as Rebate,
        load_prices as load_prices,
    )
    from opinionsim.llm._providers import (
        NotLoaded as NotLoaded,
        is_planning as is_planning,
        lacking as lacking,
        planning as planning,
        require_weights as require_weights,
        warnings_for as warnings_for,
    )
    from opinionsim.llm._reply import ParsedReply as ParsedReply, read_reply as read_reply
    from opinionsim.llm._seat import LEFT as LEFT, Left as Left, Person as Person, Question as Question, Seat as Seat
    from opinionsim.llm._slots import AccountSlots as AccountSlots, SlotPool as SlotPool
    from opinionsim.llm.scripted._answers import any_sentences as any_sentences
    from opinionsim.llm.scripted._scene import Scene as Scene
    from opinionsim.llm.scripted._script import ScriptedChatModel as ScriptedChatModel, latent as latent
    from opinionsim.llm.scripted._words import (
        PRESETS as PRESETS,
        Draws as Draws,
        ScriptedParameters as ScriptedParameters,
        settle as settle,
    )

__getattr__, __dir__ = on_first_use(__name__)
