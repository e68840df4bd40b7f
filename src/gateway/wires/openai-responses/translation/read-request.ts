import { freeFormParameters } from '../../../translation/free-form.ts';
import type { Losses } from '../../../translation/losses.ts';
import { efforts, type NeutralRequest, type NeutralTool } from '../../../translation/neutral-request.ts';
import { groupedName } from '../../../translation/tool-groups.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { words } from '../../accepted.ts';
import { isNothing, isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { numberIn, stringIn, stringsIn } from '../../read-values.ts';
import { fields } from '../../reply.ts';
import { readMessages } from './read-messages.ts';

const known = words(`
  model input instructions tools tool_choice parallel_tool_calls stream stream_options store include
  reasoning text temperature top_p top_k max_output_tokens stop presence_penalty frequency_penalty seed
  background truncation`);

/** These name what is stored at the provider. */
const stored = ['previous_response_id', 'conversation', 'prompt'];

export const readRequest: WireTranslation['readRequest'] = (body, losses) => {
  for (const name of stored) if (!isNothing(body[name])) losses.refuse(name);
  losses.rest(body, '', known, 'service option');
  if (body.store === true) losses.drop('store', 'service option');
  if (body.truncation === 'auto') losses.drop('truncation', 'service option');
  for (const name of stringsIn(body, 'include')) {
    if (name !== 'reasoning.encrypted_content') losses.drop('include', 'answer detail');
  }
  if (member(body.text, 'verbosity') != null) losses.drop('text.verbosity', 'sampling');
  return {
    usageAsked: true,
    messages: readMessages(body, losses),
    tools: readTools(objectsOf(body.tools), losses),
    stop: stringsIn(body, 'stop'),
    ...(fields({
      toolChoice: choiceOf(body.tool_choice, losses),
      parallelCalls: typeof body.parallel_tool_calls === 'boolean' ? body.parallel_tool_calls : undefined,
      maxTokens: numberIn(body, 'max_output_tokens'),
      temperature: numberIn(body, 'temperature'),
      topP: numberIn(body, 'top_p'),
      topK: numberIn(body, 'top_k'),
      seed: numberIn(body, 'seed'),
      presencePenalty: numberIn(body, 'presence_penalty'),
      frequencyPenalty: numberIn(body, 'frequency_penalty'),
      reasoning: reasoningOf(body.reasoning, losses),
      format: formatOf(member(body.text, 'format'), losses),
    }) as Partial<NeutralRequest>),
  };
};

function choiceOf(choice: unknown, losses: Losses): NeutralRequest['toolChoice'] {
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice;
  if (choice == null) return undefined;
  const name = member(choice, 'name');
  if (typeof name !== 'string') return losses.refuse('tool_choice');
  const group = member(choice, 'namespace');
  return { tool: typeof group === 'string' ? groupedName(group, name) : name };
}

function reasoningOf(reasoning: unknown, losses: Losses): NeutralRequest['reasoning'] {
  if (!isObject(reasoning)) return undefined;
  losses.rest(reasoning, 'reasoning', words('effort'), 'reasoning');
  const effort = efforts.find((one) => one === reasoning.effort);
  return effort && { effort };
}

function formatOf(format: unknown, losses: Losses): NeutralRequest['format'] {
  if (!isObject(format) || format.type === 'text') return undefined;
  if (format.type === 'json_object') return {};
  const { schema } = format as JsonObject;
  if (format.type !== 'json_schema' || !isObject(schema)) return losses.refuse('text.format');
  const name = stringIn(format, 'name');
  return { schema, ...(name !== undefined && { name }), ...(format.strict === true && { strict: true }) };
}

const functionMembers = words('type name description parameters strict');
const customMembers = words('type name description');
const groupMembers = words('type name description tools');

/** The tools of a group become tools of their own. */
function readTools(tools: readonly JsonObject[], losses: Losses, group?: string): NeutralTool[] {
  return tools.flatMap((tool) => {
    const name = stringIn(tool, 'name') ?? losses.refuse('tools[].name');
    if (tool.type === 'namespace' && group === undefined) {
      losses.rest(tool, 'tools[]', groupMembers, 'tool option');
      return readTools(objectsOf(tool.tools), losses, name);
    }
    if (tool.type !== 'function' && tool.type !== 'custom') return losses.refuse('tools[].type');
    const isCustom = tool.type === 'custom';
    losses.rest(tool, 'tools[]', isCustom ? customMembers : functionMembers, 'tool option');
    const description = stringIn(tool, 'description');
    return {
      name: group === undefined ? name : groupedName(group, name),
      ...(description !== undefined && { description }),
      parameters: isCustom ? freeFormParameters : isObject(tool.parameters) ? tool.parameters : {},
      ...(tool.strict === true && { strict: true as const }),
      ...(group !== undefined && { group: { name: group, tool: name } }),
      ...(isCustom && { freeForm: true as const }),
    };
  });
}
