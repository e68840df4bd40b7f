import type { Clock } from '../../base/clock.ts';
import { inputError } from '../../base/offsite-error.ts';
import type { ReplayedExchange } from '../../record/model-account.ts';
import { ModelConfig } from '../../suite/model-config.ts';
import { singleChunk, type UpstreamAnswer } from '../answer.ts';
import type { SessionReplay, SessionRequest } from '../gateway.ts';
import type { GatewayParts } from '../gateway-parts.ts';
import {
  type Conversation,
  readConversation,
  scriptedDocument,
  scriptedEvents,
} from '../scripted/conversation.ts';
import { bytesOf } from '../scripted/scripted-upstream.ts';
import { answerOf, endingCommand, saidBy } from '../scripted/turns.ts';
import { recordedModel, type ServedModel } from '../served-model.ts';
import type { NeutralAnswer } from '../translation/neutral-answer.ts';
import { wireTable } from '../wires/wire-table.ts';
import { type AskedRequest, type Cassette, type Recording, ReplayMiss, trialName } from './cassette.ts';
import { RecordedFinder } from './find-recorded.ts';
import { recordingOf } from './replay.ts';
import { type RecordedTurn, turnsInOrder } from './turns-in-order.ts';

type Serve = (name: string) => ServedModel;

/**
 * Finds the models of one session. All models of a session that is replayed answer from its recording. In
 * other sessions, models whose configuration names a cassette answer from that cassette. `serve` finds all
 * other models, and throws for a name that is not configured.
 */
export function replayingModels(request: SessionRequest, parts: GatewayParts, serve: Serve): Serve {
  const { replay, label } = request;
  if (replay) return fromRecording(replay, new RecordedFinder(replay.cassette, label), parts, serve);
  const finders = new Map<Cassette, RecordedFinder>();
  return (asked) => {
    const [name, config] = configured(asked, parts);
    if (!config || !('replay' in config)) return serve(asked);
    const cassette = parts.cassette?.(config.replay);
    if (!cassette) throw new Error('this gateway reads no cassettes');
    const finder = finders.get(cassette) ?? new RecordedFinder(cassette, label);
    finders.set(cassette, finder);
    const of = recordedName(name, config.replay, cassette);
    const recording = recordingOf({
      cassette,
      finder,
      model: name,
      of,
      live: 'never',
      isCassette: true,
      clock: parts.clock,
    });
    return recordedModel(name, config, recording, undefined, parts);
  };
}

function fromRecording(
  { cassette, live, of: recorded, inOrder = false }: SessionReplay,
  finder: RecordedFinder,
  parts: GatewayParts,
  serve: Serve,
): Serve {
  const ordered = inOrder ? recordingInOrder(cassette, parts.clock) : undefined;
  return (asked) => {
    const [name, known] = configured(asked, parts);
    const config = known ?? ModelConfig.parse({ replay: cassette.name });
    const of = recorded === 'any' ? undefined : name;
    const recording = ordered ?? recordingOf({ cassette, finder, model: name, of, live, clock: parts.clock });
    return recordedModel(name, config, recording, live === 'never' ? undefined : serve(asked), parts);
  };
}

/** A model's own name and configuration, given its name or an alias. */
function configured(
  asked: string,
  { models }: GatewayParts,
): readonly [name: string, config: ModelConfig | undefined] {
  if (Object.hasOwn(models, asked)) return [asked, models[asked]];
  const [name = asked, config] =
    Object.entries(models).find(([, { aliases }]) => aliases.includes(asked)) ?? [];
  return [name, config];
}

/** The model of a cassette that another one replays: that of the same name, or the only one. */
function recordedName(name: string, file: string, { trials }: Cassette): string {
  const names = new Set(trials.flatMap((trial) => trial.exchanges().map(({ model }) => model)));
  const [only, other] = names;
  if (names.has(name)) return name;
  if (only !== undefined && other === undefined) return only;
  throw inputError(
    'REPLAY_MODEL_UNKNOWN',
    `the model ${name} replays ${file}, which recorded ${[...names].join(', ') || 'no model'}`,
    { hint: 'Give the model the name that was recorded.' },
  );
}

/**
 * Gives a harness the answers that another harness got, in their order, with their commands as calls of its
 * own shell tool. The conversation shows which answers the harness already has. The live model answers after
 * the last recorded answer. It also answers all requests of other roles or without tools.
 */
function recordingInOrder(cassette: Cassette, clock: Clock): Recording {
  const [trial] = cassette.trials;
  const { turns, obstacle } = turnsInOrder(trial?.exchanges() ?? []);
  if (obstacle) throw new Error(`request ${obstacle.number} of a fork: ${obstacle.what}`);
  const given = new Set<RecordedTurn>();
  let isLive = turns.length === 0;
  return (asked) => {
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

function written(answered: NeutralAnswer, conversation: Conversation, at: number): UpstreamAnswer {
  const { streamed } = conversation;
  const body = streamed
    ? Buffer.concat([...scriptedEvents(answered, conversation, { characters: 200, at })].map(bytesOf))
    : scriptedDocument(answered, conversation, at);
  const type = streamed ? 'text/event-stream; charset=utf-8' : 'application/json';
  return { status: 200, headers: { 'content-type': type }, body: singleChunk(body) };
}
