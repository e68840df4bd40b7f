import { messageOf } from '../../base/offsite-error.ts';
import type { ScriptTurn } from '../../suite/script-file.ts';
import { shellCall } from '../scripted/turns.ts';
import { Losses } from '../translation/losses.ts';
import type { ModelPart } from '../translation/neutral-request.ts';
import { isObject, parsed } from '../wires/lenient.ts';
import type { CanonicalRequest } from './canonical-request.ts';
import type { RecordedExchange } from './cassette.ts';
import { readRecorded } from './replay.ts';

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

type Call = Extract<ModelPart, { type: 'call' }>;

/**
 * The shell commands of a recorded call. Undefined if its tool is not the one that looked like a shell, or if
 * the call does more than run a command: leaves it in the background, or types into a running one.
 */
function recordedCommands(
  { name, arguments: given }: Call,
  tools: CanonicalRequest['tools'],
): string[] | undefined {
  const offered = tools.map((tool) => ({ name: tool.name, parameters: parametersOf(tool.definition) }));
  if (shellCall(offered, '')?.tool !== name) return undefined;
  const value = parsed(given);
  if (!isObject(value) || otherModes.some((mode) => value[mode] === true)) return undefined;
  const commands = commandsIn(value);
  const folder = folderNames.map((one) => value[one]).find((one) => typeof one === 'string' && one !== '');
  if (folder === undefined) return commands;
  return commands?.map((command) => `cd ${quoted(String(folder))} && ${command}`);
}

/** Arguments with which a call does more than run a command. */
const otherModes = ['run_in_background', 'is_background', 'background', 'is_input'];

/** Arguments that name the folder in which the command runs. */
const folderNames = ['workdir', 'cwd', 'dir_path', 'directory'];

function commandsIn({ command, cmd, commands }: Record<string, unknown>): string[] | undefined {
  const one = command ?? cmd;
  if (typeof one === 'string') return [one];
  if (isTexts(one)) return [lineOf(one)];
  return isTexts(commands) ? commands : undefined;
}

/** A program and its arguments as one line. Of a shell with a script, the script. */
function lineOf(words: string[]): string {
  const [program = '', option = '', script] = words;
  if (script !== undefined && words.length === 3 && /^(?:\/bin\/)?(?:ba|z)?sh$/.test(program))
    if (/^-l?c$/.test(option)) return script;
  return words.map((word) => (/^[\w./:=@%+-]+$/.test(word) ? word : quoted(word))).join(' ');
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
}

function parametersOf(definition: string): Record<string, unknown> {
  const value = parsed(definition);
  return isObject(value) && isObject(value.parameters) ? value.parameters : {};
}
