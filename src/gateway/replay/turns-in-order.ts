import { messageOf } from '../../offsite-error.ts';
import type { ScriptTurn } from '../../suite/script-file.ts';
import { Losses } from '../translation/losses.ts';
import type { RecordedExchange } from './cassette.ts';
import { readRecorded } from './recorded-answer.ts';
import { recordedCommands } from './recorded-commands.ts';

/** A recorded answer to an agent, in a form for any harness with a shell tool. */
export interface RecordedTurn {
  exchange: RecordedExchange;
  turn: ScriptTurn;
}

/** The first recorded answer that only its own harness understands. */
export interface Obstacle {
  /** The place of its exchange in its trial, from 1. */
  number: number;
  /** Such as `it calls apply_patch, which is not a shell command`. */
  what: string;
}

/**
 * The answers to an agent's requests with tools, in their order: their texts and their shell commands,
 * without reasoning. Requests without tools ask for titles and summaries. Ends before the first obstacle.
 */
export function turnsInOrder(exchanges: readonly RecordedExchange[]): {
  turns: RecordedTurn[];
  obstacle?: Obstacle;
} {
  const turns: RecordedTurn[] = [];
  for (const exchange of exchanges) {
    const { role, request, number } = exchange;
    if (role !== 'agent' || request.tools.length === 0) continue;
    const turn = turnOf(exchange);
    if (typeof turn === 'string') return { turns, obstacle: { number, what: turn } };
    if (turn) turns.push({ exchange, turn });
  }
  return { turns };
}

/**
 * Undefined if nothing was said or called: a refused request, or reasoning alone. A string is an obstacle.
 */
function turnOf({ request, model, answer }: RecordedExchange): ScriptTurn | string | undefined {
  const recorded = answer();
  if (recorded.status >= 400) return undefined;
  const losses = new Losses('lenient', model);
  let parts: ReturnType<typeof readRecorded>['parts'];
  try {
    ({ parts } = readRecorded(recorded, losses));
  } catch (error) {
    return `it cannot be read: ${messageOf(error)}`;
  }
  for (const { path } of losses.all()) {
    const [, item] = /^answer\.(.+_(?:call|use))$/.exec(path) ?? [];
    if (item !== undefined) return `it has a ${item}, which is not a shell command`;
  }
  const run: string[] = [];
  const texts: string[] = [];
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'refusal') texts.push(part.text);
    if (part.type !== 'call') continue;
    const commands = recordedCommands(part, request.tools);
    if (!commands) return `it calls ${part.name}, which is not a shell command`;
    run.push(...commands);
  }
  const text = texts.join('\n');
  if (text.trim() === '' && run.length === 0) return undefined;
  const how = { when: {}, repeat: false, stream: { characters: 24 } };
  return { ...how, text, ...(run.length > 0 && { run }) };
}
