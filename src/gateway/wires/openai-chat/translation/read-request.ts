import { freeFormParameters } from '../../../translation/free-form.ts';
import type { Losses } from '../../../translation/losses.ts';
import { efforts, type NeutralRequest, type NeutralTool } from '../../../translation/neutral-request.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { words } from '../../accepted.ts';
import { isNothing, isObject, type JsonObject, list, member, objectsOf } from '../../lenient.ts';
import { numberIn, stringIn, stringsIn } from '../../read-values.ts';
import { fields } from '../../reply.ts';
import { readMessages } from './read-messages.ts';

const known = words(`
  model messages tools tool_choice parallel_tool_calls stream stream_options temperature top_p top_k stop
  max_tokens max_completion_tokens presence_penalty frequency_penalty seed response_format reasoning_effort
  store n modalities`);

/** Members that cannot be left out: without them, the model would answer something else. */
const needed = `functions function_call audio grammar guided_json guided_regex guided_choice guided_grammar
  structured_outputs json_schema web_search_options plugins search_parameters search_options
  enable_search`.split(/\s+/);

export const readRequest: WireTranslation['readRequest'] = (body, losses) => {
  for (const name of needed) if (!isNothing(body[name])) losses.refuse(name);
  if (typeof body.n === 'number' && body.n !== 1) losses.refuse('n');
  if (list(body.modalities).some((one) => one !== 'text')) losses.refuse('modalities');
  losses.rest(body, '', known, 'service option');
  const effort = efforts.find((one) => one === body.reasoning_effort);
  return {
    usageAsked: member(body.stream_options, 'include_usage') === true,
    messages: readMessages(body, losses),
    tools: objectsOf(body.tools).map((tool) => toolOf(tool, losses)),
    stop: stringsIn(body, 'stop'),
    ...(fields({
      toolChoice: choiceOf(body.tool_choice, losses),
      parallelCalls: typeof body.parallel_tool_calls === 'boolean' ? body.parallel_tool_calls : undefined,
      maxTokens: numberIn(body, 'max_completion_tokens') ?? numberIn(body, 'max_tokens'),
      temperature: numberIn(body, 'temperature'),
      topP: numberIn(body, 'top_p'),
      topK: numberIn(body, 'top_k'),
      seed: numberIn(body, 'seed'),
      presencePenalty: numberIn(body, 'presence_penalty'),
      frequencyPenalty: numberIn(body, 'frequency_penalty'),
      reasoning: effort && { effort },
      format: formatOf(body.response_format, losses),
    }) as Partial<NeutralRequest>),
  };
};

const toolMembers = words('type function custom');
const functionMembers = words('name description parameters strict');
const customMembers = words('name description');

function toolOf(tool: JsonObject, losses: Losses): NeutralTool {
  losses.rest(tool, 'tools[]', toolMembers, 'tool option');
  const isCustom = tool.type === 'custom';
  const inner = tool[isCustom ? 'custom' : 'function'];
  if (!isObject(inner)) return losses.refuse('tools[]');
  losses.rest(inner, 'tools[].function', isCustom ? customMembers : functionMembers, 'tool option');
  const description = stringIn(inner, 'description');
  return {
    name: stringIn(inner, 'name') ?? losses.refuse('tools[].function.name'),
    ...(description !== undefined && { description }),
    parameters: isCustom ? freeFormParameters : isObject(inner.parameters) ? inner.parameters : {},
    ...(inner.strict === true && { strict: true as const }),
    ...(isCustom && { freeForm: true }),
  };
}

function choiceOf(choice: unknown, losses: Losses): NeutralRequest['toolChoice'] {
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice;
  const name = member(member(choice, 'function') ?? member(choice, 'custom'), 'name');
  if (typeof name === 'string') return { tool: name };
  return choice == null ? undefined : losses.refuse('tool_choice');
}

function formatOf(format: unknown, losses: Losses): NeutralRequest['format'] {
  const type = member(format, 'type');
  if (type === undefined || type === 'text') return undefined;
  if (type === 'json_object') return {};
  const inner = member(format, 'json_schema');
  const schema = member(inner, 'schema');
  if (type !== 'json_schema' || !isObject(inner) || !isObject(schema))
    return losses.refuse('response_format');
  const name = stringIn(inner, 'name');
  const strict = inner.strict === true;
  return { schema, ...(name !== undefined && { name }), ...(strict && { strict }) };
}
