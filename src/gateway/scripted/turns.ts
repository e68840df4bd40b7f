import { createHash } from 'node:crypto';
import type { ScriptFile, ScriptTurn, ScriptUsage, TextMatch, When } from '../../suite/script-file.ts';
import type { NeutralAnswer, NeutralUsage } from '../translation/neutral-answer.ts';
import type { ModelPart, NeutralTool } from '../translation/neutral-request.ts';
import { fields, isObject, type JsonObject } from '../wires/lenient.ts';
import type { Conversation, Message } from './conversation.ts';

type OfferedTool = Pick<NeutralTool, 'name' | 'parameters'>;

/** The names of harnesses' shell tools; the first one that the request offers is used. */
const knownNames = [
  'bash', // opencode, pi, mini-swe-agent, our own
  'Bash', // Claude Code
  'exec_command', // Codex
  'run_shell_command', // Qwen Code, Gemini CLI
  'run_commands', // Cline
  'shell',
  'shell_command',
  'execute_command',
  'run_command',
  'terminal',
];
/** `commands` is a list of whole commands. */
const commandParameters = ['command', 'cmd', 'script', 'commands'];

/**
 * A call of the harness's own shell tool that runs `command`; undefined if no offered tool looks like one.
 */
export function shellCall(
  tools: readonly OfferedTool[],
  command: string,
): { tool: string; arguments: JsonObject } | undefined {
  const known = knownNames.map((name) => tools.find((tool) => tool.name === name));
  for (const tool of [...known, ...tools]) {
    const parameter = tool && commandParameters.find((name) => isCommand(propertiesOf(tool)[name]));
    if (tool && parameter) return { tool: tool.name, arguments: argumentsFor(tool, parameter, command) };
  }
  return undefined;
}

/** What mini-swe-agent asks its model to print at the end of a task. It refuses answers without a command. */
const submission = 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';

/** The command that ends a turn of the harness, if an answer without a call does not. */
export function endingCommand({ messages }: Pick<Conversation, 'messages'>): string | undefined {
  const asks = messages.some(({ from, text }) => from === 'user' && text.includes(submission));
  return asks ? `echo ${submission}` : undefined;
}

/** A parameter with a few fixed values is a choice, such as `view` and `create` of an editor. */
function isCommand(schema: unknown): boolean {
  return schema !== undefined && !(isObject(schema) && 'enum' in schema);
}

function propertiesOf({ parameters }: OfferedTool): JsonObject {
  return isObject(parameters.properties) ? parameters.properties : {};
}

function argumentsFor(tool: OfferedTool, parameter: string, command: string): JsonObject {
  const properties = propertiesOf(tool);
  const required = Array.isArray(tool.parameters.required) ? tool.parameters.required.map(String) : [];
  const filled = required
    .filter((name) => name !== parameter)
    .map((name) => [name, name === 'description' ? 'Run a command' : smallest(properties[name])]);
  // Some shell tools expect a program and its arguments.
  const list = parameter === 'commands' ? [command] : ['bash', '-lc', command];
  return {
    [parameter]: typeOf(properties[parameter]) === 'array' ? list : command,
    ...Object.fromEntries(filled),
  };
}

/** The smallest value that a schema allows: harnesses refuse a call without required arguments. */
function smallest(schema: unknown): unknown {
  if (!isObject(schema)) return '';
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  switch (typeOf(schema)) {
    case 'boolean':
      return false;
    case 'number':
    case 'integer':
      return typeof schema.minimum === 'number' ? schema.minimum : 0;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return '';
  }
}

function typeOf(schema: unknown): unknown {
  const type = isObject(schema) ? schema.type : undefined;
  return Array.isArray(type) ? type[0] : type;
}

/** A turn that needs something that the request does not offer. */
interface Impossible {
  impossible: string;
}

/**
 * The answer of a turn to one conversation. Its id is the same for the same conversation, so that a retry
 * gets the lost answer. The arguments of a call may be any text that the script uses instead of JSON.
 */
export function answerOf(
  turn: Pick<ScriptTurn, 'text' | 'run' | 'calls' | 'usage' | 'stop'>,
  conversation: Conversation,
): NeutralAnswer | Impossible {
  const id = conversationKey(conversation).slice(0, 24);
  const ending = turn.calls === undefined ? endingCommand(conversation) : undefined;
  const run = turn.run ?? (ending === undefined ? [] : [ending]);
  const runs = run.map((command) => ({ command, call: shellCall(conversation.tools, command) }));
  const lost = runs.find(({ call }) => call === undefined);
  if (lost) {
    const offered = conversation.tools.map(({ name }) => name).join(', ');
    return {
      impossible:
        `the script runs ${JSON.stringify(lost.command)}, ` +
        `and no tool of the request looks like a shell: ${offered}`,
    };
  }
  const called = [...runs.flatMap(({ call }) => call ?? []), ...(turn.calls ?? [])];
  const calls = called.map(({ tool, arguments: given }, index) => ({
    type: 'call' as const,
    id: `call_${id}_${index}`,
    name: tool,
    arguments: typeof given === 'string' ? given : JSON.stringify(given),
  }));
  const text = turn.text ?? '';
  const written = text.length + calls.reduce((sum, call) => sum + call.arguments.length, 0);
  const said: ModelPart = { type: turn.stop === 'refusal' ? 'refusal' : 'text', text };
  return {
    id,
    model: conversation.model,
    parts: [...(text === '' ? [] : [said]), ...calls],
    stop: turn.stop === 'refusal' ? 'refused' : (turn.stop ?? (calls.length > 0 ? 'tools' : 'done')),
    usage: scriptedUsage(turn.usage ?? {}, conversation, written),
  };
}

/** Identifies one state of one conversation: a retry has the same key. */
export function conversationKey({ wire, model, system, messages, tools }: Conversation): string {
  const whole: JsonObject = { wire, model, system, messages, tools: tools.map(({ name }) => name) };
  return createHash('sha256').update(JSON.stringify(whole)).digest('hex');
}

/** Four characters per token: the number only has to be plausible and the same each time. */
export function estimateTokens(characters: number): number {
  return Math.ceil(characters / 4);
}

function scriptedUsage(usage: ScriptUsage, { wire, length }: Conversation, written: number): NeutralUsage {
  if (usage === 'none') return {};
  const { input = estimateTokens(length), output = estimateTokens(written) } = usage;
  // Qwen Code counts cached tokens of messages only if an answer has both counts.
  const none = wire === 'anthropic-messages' && usage.cacheRead !== undefined ? 0 : undefined;
  const { cacheRead, cacheWrite = none, reasoning } = usage;
  return fields({ input, output, cacheRead, cacheWrite, reasoning });
}

/**
 * The turn that answers a request; undefined if none fits, and then `otherwise` answers.
 *
 * Keeps no state between requests, so retries, parallel trials and side questions cannot confuse a script:
 * harnesses send the whole conversation each time, and the script's earlier answers in it show which turns
 * are used. Each turn answers once (unless it repeats): the first unused one whose `when` holds.
 */
export function chooseTurn(script: ScriptFile, conversation: Conversation): ScriptTurn | undefined {
  const used = new Set<ScriptTurn>();
  const endingCalls = endingCommand(conversation) === undefined ? 0 : 1;
  let answers = 0;
  for (const [index, message] of conversation.messages.entries()) {
    if (message.from !== 'model') continue;
    const before = conversation.messages.slice(0, index);
    const answered = fitting(script, conversation, before, answers + 1, used).find((turn) =>
      saidBy(turn, message, endingCalls),
    );
    // A message that matches no turn came from the harness (some begin with a greeting) or from `otherwise`.
    if (answered || message.text === script.otherwise) answers += 1;
    if (answered && !answered.repeat) used.add(answered);
  }
  return fitting(script, conversation, conversation.messages, answers + 1, used)[0];
}

function fitting(
  script: ScriptFile,
  conversation: Conversation,
  messages: readonly Message[],
  answer: number,
  used: ReadonlySet<ScriptTurn>,
): ScriptTurn[] {
  const callsTools = script.turns.some(({ run, calls }) => run ?? calls);
  const offered = conversation.tools.length > 0;
  return script.turns.filter((turn) => {
    if (used.has(turn)) return false;
    // Harnesses request titles and summaries without tools; these must not use up the turns of an agent's
    // script.
    if (!offered && callsTools && turn.when.tools !== false) return false;
    if (!offered && (turn.run ?? turn.calls)) return false;
    return holds(turn.when, conversation, messages, answer);
  });
}

function holds(
  when: When,
  conversation: Conversation,
  messages: readonly Message[],
  answer: number,
): boolean {
  const { system, model, wire, tools } = conversation;
  const textsFrom = (from: Message['from'], among = messages) =>
    among.filter((message) => message.from === from).map(({ text }) => text);
  const spokeLast = messages.findLastIndex(({ from }) => from === 'model');
  return (
    found(when.user, textsFrom('user').slice(-1)) &&
    found(when.anyUser, textsFrom('user')) &&
    found(when.result, textsFrom('tool', messages.slice(spokeLast + 1))) &&
    found(when.anyResult, textsFrom('tool')) &&
    found(when.system, [system]) &&
    found(when.model, [model]) &&
    (when.wire === undefined || when.wire === wire) &&
    (when.turn === undefined || when.turn === answer) &&
    (when.last === undefined || when.last === messages.at(-1)?.from) &&
    (when.tools === undefined || when.tools === tools.length > 0)
  );
}

function found(match: TextMatch | undefined, texts: readonly string[]): boolean {
  if (match === undefined) return true;
  if (typeof match === 'object' && 'matches' in match) {
    const expression = new RegExp(match.matches, 'u');
    return texts.some((text) => expression.test(text));
  }
  const wanted = typeof match === 'string' ? match : match.contains;
  return texts.some((text) => text.includes(wanted));
}

/**
 * Whether a message of the model may come from this turn. Harnesses trim texts, and keep the beginning of a
 * text that was cut.
 *
 * @param endingCalls the calls of an answer that ends a turn of the harness
 */
export function saidBy(
  turn: Pick<ScriptTurn, 'text' | 'run' | 'calls'>,
  { text, calls }: { text: string; calls: number },
  endingCalls: number,
): boolean {
  const called = (turn.run?.length ?? 0) + (turn.calls?.length ?? 0) || endingCalls;
  if (called > 0 || calls > 0) return called === calls;
  const said = text.trim();
  return said !== '' && (turn.text ?? '').trim().startsWith(said);
}
