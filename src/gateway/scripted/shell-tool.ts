import { isObject, type JsonObject } from '../wires/lenient.ts';
import type { OfferedTool } from '../wires/model-request.ts';
import type { Conversation } from './conversation.ts';

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
