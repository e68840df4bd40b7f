import type { CanonicalRequest, CanonicalTurn } from './canonical-request.ts';
import { type RecordedExchange, type RecordedTrial, type Role, steadyTurns, trialName } from './cassette.ts';

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
