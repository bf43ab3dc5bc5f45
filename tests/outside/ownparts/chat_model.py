from langchain_core.language_models import SimpleChatModel

import opinionsim as osim


@osim.part("chat_model")
class Repeating(SimpleChatModel):
    """Says the same each time."""

    words: str = "I believe it."

    @property
    def _llm_type(self):
        return "repeating"

    def _call(self, messages, stop=None, run_manager=None, **kwargs):
        return f"{self.words} I have read {len(messages)} messages."
