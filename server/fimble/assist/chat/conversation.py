"""Conversations: their turns, kept as they were sent, and shortened only where they must be.

The engine keeps what it computed for a prompt and goes on from there as long as the next one
begins alike. So a turn's text is made once and never changes, but for two steps that free
room: the context of the oldest turns goes first, then whole turns. Both are remembered and
said in each answer from then on; more is freed than is needed at once, so that the next
questions find the prompt as it is. Knows no engine: counts of tokens are given.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fimble.assist.chat.pieces import Piece
from fimble.engine.protocol import ChatMessage
from fimble_context.assembly import LeftOut

__all__ = ["MESSAGE_TOKENS", "Conversation", "Conversations", "Turn"]

#: What a chat template adds to a message, at most.
MESSAGE_TOKENS = 8
#: When something has to go, so much of the budget is filled afterwards, in hundredths.
_FILLED_AFTER = 70


@dataclass(slots=True)
class Turn:
    """A question with its context, and the answer, as they are in the prompt; token counts.

    ``context`` is rendered already, ``pieces`` are what it was made of. ``shows_context`` and
    ``shown`` say what of the turn is still in the prompt.
    """

    question: str
    context: str
    answer: str = ""
    question_tokens: int = 0
    context_tokens: int = 0
    answer_tokens: int = 0
    pieces: tuple[Piece, ...] = ()
    shows_context: bool = True
    shown: bool = True

    @property
    def asked(self) -> str:
        """The user's message, as far as it is in the prompt."""
        if self.context:
            return f"{self.context}\n\n{self.question}"
        return self.question

    @property
    def tokens(self) -> int:
        """What the turn costs in the prompt."""
        if not self.shown:
            return 0
        context = self.context_tokens if self.context else 0
        messages = 2 * MESSAGE_TOKENS if self.answer else MESSAGE_TOKENS
        return self.question_tokens + context + self.answer_tokens + messages

    def drop_context(self) -> None:
        """Takes the context out of the prompt, for good."""
        if self.context:
            self.shows_context, self.context, self.pieces = False, "", ()

    def drop(self) -> None:
        """Takes all of it out of the prompt, for good."""
        self.shown, self.context, self.pieces = False, "", ()
        self.question = self.answer = ""

    @property
    def size(self) -> int:
        """Code points that are kept in memory."""
        texts = sum(len(piece.text) for piece in self.pieces)
        return len(self.question) + len(self.context) + len(self.answer) + texts


@dataclass(slots=True)
class Conversation:
    """``system`` is the same for all of it. One question at a time: hold ``asking``."""

    id: str
    system: str = ""
    system_tokens: int = 0
    turns: list[Turn] = field(default_factory=list)
    #: What an earlier part of it has been lost for, if it was.
    lost: str = ""
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def tokens(self) -> int:
        """What the prompt has so far."""
        return self.system_tokens + MESSAGE_TOKENS + sum(turn.tokens for turn in self.turns)

    @property
    def size(self) -> int:
        """Code points that are kept in memory."""
        return len(self.system) + sum(turn.size for turn in self.turns)

    def fit(self, turn: Turn, budget: int) -> bool:
        """Makes room for a new turn within ``budget`` tokens; False where there cannot be."""
        if self.tokens + turn.tokens <= budget:
            return True
        aim = budget * _FILLED_AFTER // 100
        for old in self.turns:
            if self.tokens + turn.tokens <= aim:
                return True
            old.drop_context()
        for old in self.turns:
            if self.tokens + turn.tokens <= aim:
                return True
            old.drop()
        return self.tokens + turn.tokens <= budget

    def messages(self, turn: Turn) -> list[ChatMessage]:
        """The prompt's messages, the new turn's last."""
        messages = [ChatMessage("system", self.system)]
        for each in self.turns:
            if each.shown:
                messages.append(ChatMessage("user", each.asked))
                messages.append(ChatMessage("assistant", each.answer))
        messages.append(ChatMessage("user", turn.asked))
        return messages

    def left_out(self) -> list[LeftOut]:
        """What of earlier turns is no longer in the prompt."""
        gone = [LeftOut("", self.lost)] if self.lost else []
        for number, turn in enumerate(self.turns, 1):
            if not turn.shown:
                gone.append(LeftOut("", f"question {number} and its answer: no room for them"))
            elif not turn.shows_context:
                gone.append(LeftOut("", f"the context of question {number}: no room for it"))
        return gone

    def pieces(self) -> list[Piece]:
        """The pieces whose texts are in the prompt."""
        return [piece for turn in self.turns for piece in turn.pieces]


class Conversations:
    """The conversations of a session, at most ``most`` of them and ``largest`` code points.

    The least recently used one is forgotten first; whoever goes on with it is told so.
    """

    def __init__(self, most: int = 32, largest: int = 16_000_000) -> None:
        self._most = most
        self._largest = largest
        self._by_id: OrderedDict[str, Conversation] = OrderedDict()
        self._forgotten: OrderedDict[str, None] = OrderedDict()

    def get(self, id: str, history: Sequence[tuple[str, str]] = ()) -> Conversation:
        """The conversation of that id; a new one where it is not known.

        ``history`` are the questions and answers so far as the client has them, from which a
        conversation that is not known here is made again, without its context.
        """
        known = self._by_id.get(id)
        if known is None:
            known = self._by_id[id] = Conversation(id)
            if history:
                known.turns = [Turn(question, "", answer) for question, answer in history]
                known.lost = "the context of earlier questions: the conversation was made again"
            elif id in self._forgotten:
                known.lost = "earlier questions: they were forgotten to make room for others"
            self._forgotten.pop(id, None)
        self._by_id.move_to_end(id)
        return known

    def clear(self, id: str) -> None:
        """Forgets a conversation because its user wants that."""
        self._by_id.pop(id, None)
        self._forgotten.pop(id, None)

    def trim(self) -> None:
        """After an answer: forgets the least recently used ones where there is too much."""
        while len(self._by_id) > self._most or self._size(self._by_id.values()) > self._largest:
            id = next((i for i, each in self._by_id.items() if not each.asking.locked()), None)
            if id is None or len(self._by_id) == 1:
                return
            del self._by_id[id]
            self._forgotten[id] = None
            while len(self._forgotten) > 1000:
                self._forgotten.popitem(last=False)

    def __len__(self) -> int:
        return len(self._by_id)

    def _size(self, conversations: Iterable[Conversation]) -> int:
        return sum(each.size for each in conversations)
