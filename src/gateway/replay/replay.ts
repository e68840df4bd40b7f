import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/offsite-error.ts';
import type { ReplayedExchange } from '../../record/model-account.ts';
import type { Wire } from '../../suite/model-config.ts';
import { singleChunk, type Upstream, type UpstreamAnswer } from '../answer.ts';
import { GatewayRefusal } from '../room.ts';
import { estimateTokens } from '../scripted/turns.ts';
import { isEvents, wholeAnswer } from '../translation/answer-stream.ts';
import { Losses } from '../translation/losses.ts';
import type { NeutralAnswer } from '../translation/neutral-answer.ts';
import type { NeutralRequest } from '../translation/neutral-request.ts';
import { callIds } from '../translation/stream-steps.ts';
import { estimatedCount, translateAnswer } from '../translation/translate-answer.ts';
import { wireTable } from '../wires/wire-table.ts';
import { type CanonicalRequest, type CanonicalTurn, canonicalRequest } from './canonical-request.ts';
import {
  type AskedRequest,
  type Cassette,
  type RecordedAnswer,
  type RecordedExchange,
  type RecordedTrial,
  type Recording,
  ReplayMiss,
  type Role,
  recordAgain,
  steadyTurns,
  trialName,
} from './cassette.ts';
import type { Match, RecordedFinder } from './find-recorded.ts';

interface RecordingParts {
  cassette: Cassette;
  /** One for all models of a session that have the same cassette. */
  finder: RecordedFinder;
  /** The configured name of the model. */
  model: string;
  /** The recorded model whose exchanges answer. Undefined for any. */
  of: string | undefined;
  /** As in a session's replay. */
  live: 'never' | 'missing' | 'at-end';
  /** Whether it is a file that the configuration names, and no batch of this machine. */
  isCassette?: boolean;
  clock: Clock;
}

/** Answers the requests to one model of one session from a cassette. */
export function recordingOf(parts: RecordingParts): Recording {
  return (asked) => {
    // Counts are not recorded for every wire, so each is an estimate.
    if (asked.purpose === 'count')
      return upstreamOf(() => estimatedCount(asked.wire, estimateTokens(asked.bytes)));
    const read = readNeutral(parts, asked);
    const match = typeof read === 'string' ? undefined : find(parts, asked, read);
    if (match && typeof read !== 'string') return upstreamOf(() => recordedAnswer(parts, asked, read, match));
    const { live, finder } = parts;
    if (live === 'missing' || (live === 'at-end' && finder.isPlayed(asked.role))) return 'live';
    throw new ReplayMiss(missText(parts, asked, read), parts.isCassette ? recordAgain : undefined);
  };
}

function recordedAnswer(
  { cassette, clock }: RecordingParts,
  { wire }: AskedRequest,
  { request, losses }: Read,
  match: Match,
): UpstreamAnswer {
  const { exchange, trial } = match;
  try {
    const asked = { wire, request, losses, at: clock.now() };
    const { body, ...head } = writeRecorded(exchange.answer(), asked);
    return { ...head, body: singleChunk(body), replayed: replayedExchangeOf(cassette, match) };
  } catch (cause) {
    const what = `the recorded answer ${exchange.number} of ${trialName(trial.label)} cannot be read`;
    throw new GatewayRefusal(502, 'REPLAY_UNREADABLE', `${what}: ${messageOf(cause)}`, { cause });
  }
}

interface Read {
  request: NeutralRequest;
  losses: Losses;
}

/** The neutral form, or why there is none. */
function readNeutral({ model }: RecordingParts, { wire, json, streamed }: AskedRequest): Read | string {
  const losses = new Losses('lenient', model);
  try {
    const read = wireTable[wire].translation.readRequest(json, losses);
    return { losses, request: { ...read, model, streamed } };
  } catch (error) {
    return messageOf(error);
  }
}

function find(
  { finder, of, model }: RecordingParts,
  { role, wire }: AskedRequest,
  { request }: Read,
): Match | undefined {
  const isOf = (recorded: string) => of === undefined || recorded === of;
  return finder.find({ role, isOf, model, forms: requestForms(request, wire, finder.trials[0]) });
}

function replayedExchangeOf(
  { name }: Cassette,
  { exchange, trial, how, again, differs }: Match,
): ReplayedExchange {
  return {
    of: name,
    trial: trialName(trial.label),
    number: exchange.number,
    how,
    ...(differs.length > 0 && { differs }),
    ...(again && { again }),
  };
}

function missText({ cassette, finder }: RecordingParts, asked: AskedRequest, read: Read | string): string {
  const what = `request ${asked.number} (${asked.role}) has no recorded answer in ${cassette.name}`;
  if (typeof read === 'string') return `${what}: it cannot be compared, ${read}`;
  const [form] = requestForms(read.request, asked.wire, undefined);
  const nearest = form && nearestTo(form, asked.role, finder.trials);
  return `${what}: ${nearest ?? `the cassette has no request of the role ${asked.role}`}`;
}

function upstreamOf(answer: () => UpstreamAnswer): Upstream {
  return { send: async () => answer() };
}

/**
 * The forms in which a request may be recorded: as it is, and as it is after a translation to each wire to
 * which the trial's requests on the same wire were translated.
 */
function requestForms(
  request: NeutralRequest,
  wire: Wire,
  trial: RecordedTrial | undefined,
): CanonicalRequest[] {
  const translated = (trial?.exchanges() ?? []).filter(({ from }) => from === wire);
  const others = new Set(translated.map((exchange) => exchange.wire));
  return [canonicalRequest(request), ...[...others].map((other) => carriedOver(request, other))];
}

function carriedOver(request: NeutralRequest, wire: Wire): CanonicalRequest {
  const { translation } = wireTable[wire];
  const losses = new Losses('lenient', request.model);
  const written = translation.writeRequest(request, losses, {
    model: request.model,
    maxOutputTokens: undefined,
  });
  return canonicalRequest(translation.readRequest(written, losses));
}

/** The recorded request that begins most like this one, and where the two part. For people only. */
export function nearestTo(
  request: CanonicalRequest,
  role: Role,
  trials: readonly RecordedTrial[],
): string | undefined {
  const asked = steadyTurns(request, role);
  let best:
    | { shared: number; trial: RecordedTrial; exchange: RecordedExchange; there: CanonicalTurn[] }
    | undefined;
  for (const trial of trials) {
    for (const exchange of trial.exchanges()) {
      if (exchange.role !== role) continue;
      const there = steadyTurns(exchange.request, role);
      const shared = sharedTurns(asked, there);
      const isNearer =
        !best ||
        shared > best.shared ||
        (shared === best.shared &&
          Math.abs(there.length - asked.length) < Math.abs(best.there.length - asked.length));
      if (isNearer) best = { shared, trial, exchange, there };
    }
  }
  if (!best) return undefined;
  const { shared, trial, exchange, there } = best;
  const where = `the nearest is request ${exchange.number} of ${trialName(trial.label)}`;
  if (shared === asked.length && shared === there.length)
    return `${where}: the conversation is the same, but only one of the two offers tools or asks for JSON`;
  return `${where}: ${turnDifference(asked[shared], there[shared], shared + 1)}`;
}

function sharedTurns(a: readonly CanonicalTurn[], b: readonly CanonicalTurn[]): number {
  const at = a.findIndex((turn, index) => JSON.stringify(turn) !== JSON.stringify(b[index]));
  return at === -1 ? a.length : at;
}

function turnDifference(
  now: CanonicalTurn | undefined,
  then: CanonicalTurn | undefined,
  number: number,
): string {
  if (!now) return `it has ${number} turns or more, and this request ended before`;
  if (!then) return `it ended before turn ${number}`;
  const [what, before, after] = firstDifference(now, then);
  return `turn ${number} differs in ${what}: recorded ${excerpt(before, after)}, now ${excerpt(after, before)}`;
}

function firstDifference(now: CanonicalTurn, then: CanonicalTurn): [what: string, then: string, now: string] {
  if (now.by === 'model' && then.by === 'model') {
    if (now.text !== then.text) return ["the model's text", then.text, now.text];
    return ["the model's calls", JSON.stringify(then.calls), JSON.stringify(now.calls)];
  }
  if (now.by === 'user' && then.by === 'user') {
    if (now.said !== then.said) return ["the user's text", then.said, now.said];
    const at = then.results.findIndex((text, index) => text !== now.results[index]);
    if (at !== -1) return [`the result of call ${at + 1}`, then.results[at] ?? '', now.results[at] ?? ''];
    return ['its images or results', String(then.results.length), String(now.results.length)];
  }
  return ['whose turn it is', then.by, now.by];
}

/** A piece of a text around the place where it begins to differ from another. */
function excerpt(text: string, other: string): string {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at += 1;
  const from = Math.max(0, at - 20);
  const piece = text.slice(from, at + 60).toWellFormed();
  return JSON.stringify(`${from > 0 ? '…' : ''}${piece}${at + 60 < text.length ? '…' : ''}`);
}

interface AskedAs {
  wire: Wire;
  request: NeutralRequest;
  losses: Losses;
  /** Epoch milliseconds. */
  at: number;
}

/** An answer for a client, complete. */
interface WrittenAnswer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

const json = { 'content-type': 'application/json' };
const events = { 'content-type': 'text/event-stream; charset=utf-8' };

/**
 * A recorded answer as a client asks for it: unchanged if it has the client's wire and form, otherwise
 * translated. Throws {@link UnreadableAnswer} if it cannot be read.
 */
function writeRecorded({ wire, status, body }: RecordedAnswer, asked: AskedAs): WrittenAnswer {
  const { request, losses, at } = asked;
  const isStream = isEvents(body.toString('utf8'));
  const headers = isStream ? events : json;
  const hasForm = status >= 400 || isStream === request.streamed;
  if (wire === asked.wire && hasForm) return { status, headers, body };
  const from = {
    from: asked.wire,
    to: wire,
    sent: undefined,
    request,
    losses,
    estimate: 0,
    estimated: false,
  };
  const { transcoder, ...translated } = translateAnswer({ status, headers }, from, 'answer', at);
  const written = Buffer.concat([...transcoder.push(body), ...transcoder.end()]);
  const problem = transcoder.problem();
  if (problem) throw problem;
  return {
    status: translated.status,
    headers: request.streamed && status < 400 ? events : json,
    body: written,
  };
}

/**
 * A recorded answer in the neutral form. Throws {@link UnreadableAnswer} if it cannot be read.
 *
 * @param losses receives what the neutral form has no place for
 */
export function readRecorded({ wire, body }: RecordedAnswer, losses: Losses): NeutralAnswer {
  return wholeAnswer(wireTable[wire], body.toString('utf8'), callIds(), losses);
}
