import { shellCall } from '../scripted/shell-tool.ts';
import type { ModelPart } from '../translation/neutral-request.ts';
import { isObject, parsed } from '../wires/lenient.ts';
import type { CanonicalRequest } from './canonical-request.ts';

type Call = Extract<ModelPart, { type: 'call' }>;

/**
 * The shell commands of a recorded call. Undefined if its tool is not the one that looked like a shell, or if
 * the call does more than run a command: leaves it in the background, or types into a running one.
 */
export function recordedCommands(
  { name, arguments: given }: Call,
  tools: CanonicalRequest['tools'],
): string[] | undefined {
  const offered = tools.map((tool) => ({ name: tool.name, parameters: parametersOf(tool.definition) }));
  if (shellCall(offered, '')?.tool !== name) return undefined;
  const value = parsed(given);
  if (!isObject(value) || modes.some((mode) => value[mode] === true)) return undefined;
  const commands = commandsIn(value);
  const folder = folders.map((one) => value[one]).find((one) => typeof one === 'string' && one !== '');
  if (folder === undefined) return commands;
  return commands?.map((command) => `cd ${quoted(String(folder))} && ${command}`);
}

/** Arguments with which a call does more than run a command. */
const modes = ['run_in_background', 'is_background', 'background', 'is_input'];

/** Arguments that name the folder in which the command runs. */
const folders = ['workdir', 'cwd', 'dir_path', 'directory'];

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
