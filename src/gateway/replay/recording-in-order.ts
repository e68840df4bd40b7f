import type { Clock } from '../../clock.ts';
import type { ReplayedExchange } from '../../record/replayed-exchange.ts';
import { answerOf, type ScriptedAnswer } from '../scripted/answer.ts';
import { saidBy } from '../scripted/choose-turn.ts';
import type { Conversation } from '../scripted/conversation.ts';
import { bytesOf } from '../scripted/pass-events.ts';
import { readConversation } from '../scripted/read-conversation.ts';
import { endingCommand } from '../scripted/shell-tool.ts';
import type { UpstreamAnswer } from '../upstream.ts';
import { wireTable } from '../wires/wire-table.ts';
import { type Cassette, trialName } from './cassette.ts';
import { type AskedRequest, type Recording, ReplayMiss } from './recording.ts';
import { type RecordedTurn, turnsInOrder } from './turns-in-order.ts';

/**
 * Gives a harness the answers that another harness got, in their order, with their commands as calls of its
 * own shell tool. The conversation shows which answers the harness already has. The live model answers after
 * the last recorded answer. It also answers all requests of other roles or without tools.
 */
export function recordingInOrder(cassette: Cassette, clock: Clock): Recording {
  const [trial] = cassette.trials;
  const { turns, obstacle } = turnsInOrder(trial?.exchanges() ?? []);
  if (obstacle) throw new Error(`request ${obstacle.number} of a fork: ${obstacle.what}`);
  const given = new Set<RecordedTurn>();
  let isLive = turns.length === 0;
  return {
    answer(asked) {
      const { role, wire, json, bytes, streamed, purpose } = asked;
      if (isLive || role !== 'agent' || purpose === 'count') return 'live';
      const inPath = wireTable[wire].targetOf && { model: '', streamed, purpose };
      const conversation = readConversation(wire, json, bytes, inPath);
      if (conversation.tools.length === 0) return 'live';
      const next = nextTurn(turns, conversation);
      // A harness may shorten its conversation later, and must not get the first answers again.
      isLive = next === undefined;
      if (!next || !trial) return 'live';
      const replayed: ReplayedExchange = {
        of: cassette.name,
        trial: trialName(trial.label),
        number: next.exchange.number,
        how: 'order',
        ...(given.has(next) && { again: true }),
      };
      const answered = answerOf(next.turn, conversation);
      if ('impossible' in answered) throw withoutShell(asked, replayed, conversation);
      given.add(next);
      return { send: async () => ({ ...written(answered, conversation, clock.now()), replayed }) };
    },
  };
}

/** The first turn that is not in the conversation yet. A greeting of the harness's own is no turn. */
function nextTurn(turns: readonly RecordedTurn[], conversation: Conversation): RecordedTurn | undefined {
  const endingCalls = endingCommand(conversation) === undefined ? 0 : 1;
  let place = 0;
  for (const message of conversation.messages) {
    const next = turns[place];
    if (!next) break;
    if (message.from === 'model' && saidBy(next.turn, message, endingCalls)) place += 1;
  }
  return turns[place];
}

function withoutShell(
  { number }: AskedRequest,
  { number: recorded, trial }: ReplayedExchange,
  { tools }: Conversation,
): ReplayMiss {
  return new ReplayMiss(
    `request ${number} (agent) offers no tool that looks like a shell for the commands of ` +
      `request ${recorded} of ${trial}, only ${tools.map(({ name }) => name).join(', ')}`,
    'Fork it with another harness, or with --at 0.',
  );
}

function written(answered: ScriptedAnswer, conversation: Conversation, at: number): UpstreamAnswer {
  const { wire, streamed, usageAsked } = conversation;
  const { write, writeStream } = wireTable[wire].answers;
  const body = streamed
    ? Buffer.concat([...writeStream(answered, { characters: 200, at, usageAsked })].map(bytesOf))
    : Buffer.from(JSON.stringify(write(answered, at)));
  const type = streamed ? 'text/event-stream; charset=utf-8' : 'application/json';
  return { status: 200, headers: { 'content-type': type }, body: one(body) };
}

async function* one(bytes: Buffer): AsyncIterable<Buffer> {
  yield bytes;
}
