import type { Losses } from '../../../translation/losses.ts';
import { efforts, type NeutralRequest, type NeutralTool } from '../../../translation/neutral-request.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { words } from '../../accepted.ts';
import { isObject, type JsonObject, list, member, objectsOf } from '../../lenient.ts';
import { numberIn, stringIn, stringsIn } from '../../read-values.ts';
import { fields } from '../../reply.ts';
import { readMessages } from './read-messages.ts';

const known = words(`
  model messages system max_tokens stop_sequences stream temperature top_k top_p tools tool_choice thinking
  output_config mcp_servers container`);

export const readRequest: WireTranslation['readRequest'] = (body, losses) => {
  for (const name of ['mcp_servers', 'container']) {
    if (body[name] != null && list(body[name]).length !== 0) losses.refuse(name);
  }
  losses.rest(body, '', known, 'service option');
  const choice = body.tool_choice;
  return {
    usageAsked: true,
    messages: readMessages(body, losses),
    tools: objectsOf(body.tools).map((tool) => toolOf(tool, losses)),
    stop: stringsIn(body, 'stop_sequences'),
    ...(fields({
      toolChoice: choiceOf(choice, losses),
      parallelCalls: member(choice, 'disable_parallel_tool_use') === true ? false : undefined,
      maxTokens: numberIn(body, 'max_tokens'),
      temperature: numberIn(body, 'temperature'),
      topP: numberIn(body, 'top_p'),
      topK: numberIn(body, 'top_k'),
      reasoning: reasoningOf(body),
      format: formatOf(body.output_config),
    }) as Partial<NeutralRequest>),
  };
};

const toolMembers = words('type name description input_schema strict');

function toolOf(tool: JsonObject, losses: Losses): NeutralTool {
  // Other types name a tool whose definition only the provider has.
  if (tool.type != null && tool.type !== 'custom') losses.refuse('tools[].type');
  losses.rest(tool, 'tools[]', toolMembers, 'tool option');
  const description = stringIn(tool, 'description');
  return {
    name: stringIn(tool, 'name') ?? losses.refuse('tools[].name'),
    ...(description !== undefined && { description }),
    parameters: isObject(tool.input_schema) ? tool.input_schema : {},
    ...(tool.strict === true && { strict: true as const }),
  };
}

function choiceOf(choice: unknown, losses: Losses): NeutralRequest['toolChoice'] {
  switch (member(choice, 'type')) {
    case 'auto':
    case 'none':
      return member(choice, 'type') as 'auto' | 'none';
    case 'any':
      return 'required';
    case 'tool': {
      const name = member(choice, 'name');
      return { tool: typeof name === 'string' ? name : losses.refuse('tool_choice.name') };
    }
    default:
      return undefined;
  }
}

function reasoningOf({ thinking, output_config: config }: JsonObject): NeutralRequest['reasoning'] {
  if (member(thinking, 'type') === 'disabled') return { effort: 'none' };
  const wanted = member(config, 'effort');
  const effort = efforts.find((one) => one === wanted);
  const budget = isObject(thinking) ? numberIn(thinking, 'budget_tokens') : undefined;
  if (effort === undefined && budget === undefined) return undefined;
  return { ...(effort && { effort }), ...(budget !== undefined && { budget }) };
}

function formatOf(config: unknown): NeutralRequest['format'] {
  const schema = member(member(config, 'format'), 'schema');
  return isObject(schema) ? { schema } : undefined;
}
