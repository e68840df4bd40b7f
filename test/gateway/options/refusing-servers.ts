import type { JsonObject } from '../../../src/gateway/wires/lenient.ts';
import { question } from '../gateway-fixture.ts';
import { chatAnswer, json, type Step } from '../test-upstream.ts';

/** What a server says to a request that it does not like; undefined if it likes it. */
type Refusal = (body: JsonObject) => [status: number, body: object | string] | undefined;

/** A server that refuses some requests, and answers all others. */
export function particular(refusal: Refusal): Step {
  return (response, { body, ...rest }) => {
    const refused = refusal(JSON.parse(body.toString()));
    if (!refused) return json(200, chatAnswer)(response, { body, ...rest });
    const [status, said] = refused;
    if (typeof said === 'string')
      return response.writeHead(status, { 'content-type': 'text/plain' }).end(said);
    return json(status, said)(response, { body, ...rest });
  };
}

const has = (name: string) => (body: JsonObject) => body[name] !== undefined;
const toolList = (body: JsonObject) => body.tools as { function: JsonObject }[];
export const messageList = (body: JsonObject) => body.messages as JsonObject[];
const bashTool = {
  type: 'function',
  function: { name: 'bash', strict: true, parameters: { type: 'object' } },
};

/** How it is refused, what refuses it, what it says, and what is left out. */
export const kinds: [string, (body: JsonObject) => boolean, number, object | string, string[]][] = [
  [
    'a name in param, as OpenAI writes it',
    has('parallel_tool_calls'),
    400,
    { error: { message: 'Unknown parameter.', param: 'parallel_tool_calls', code: 'unknown_parameter' } },
    ['parallel_tool_calls'],
  ],
  [
    "a list of detail, as FastAPI writes it, with the request's own values",
    has('reasoning_effort'),
    422,
    {
      detail: [
        { type: 'extra_forbidden', loc: ['body', 'reasoning_effort'], msg: 'Extra inputs', input: 'store' },
      ],
    },
    ['reasoning_effort'],
  ],
  ['plain text', has('store'), 400, 'the field store is not known to this server', ['store']],
  ['a Go decoder', has('verbosity'), 400, { error: 'json: unknown field "verbosity"' }, ['verbosity']],
  [
    'a Rust decoder, which lists what it knows',
    has('service_tier'),
    422,
    'unknown field `service_tier`, expected one of `messages`, `temperature`, `store`, `model`',
    ['service_tier'],
  ],
  [
    'another order: first what it knows',
    has('service_tier'),
    400,
    { object: 'error', message: 'Supported: temperature, store. Not supported here: service_tier.' },
    ['service_tier'],
  ],
  [
    'the name of a feature',
    has('reasoning_effort'),
    400,
    { error: { message: '"tiny:1b" does not support thinking', type: 'api_error' } },
    ['reasoning_effort'],
  ],
  [
    'a document in a text, as Python writes it',
    has('stream_options'),
    400,
    { message: "[{'type': 'extra', 'loc': ('body', 'stream_options'), 'msg': 'no'}]", object: 'error' },
    ['stream_options'],
  ],
  [
    'the name of a feature in other words',
    has('parallel_tool_calls'),
    400,
    { object: 'error', message: 'This model only supports single tool-calls at once!' },
    ['parallel_tool_calls'],
  ],
  [
    'a router that knows no server for it',
    has('reasoning_effort'),
    404,
    { error: { message: 'No endpoints found that support the requested parameters: reasoning_effort' } },
    ['reasoning_effort'],
  ],
  [
    'a gateway that allows it to nobody',
    has('service_tier'),
    403,
    { error: { message: 'service_tier is not allowed for this key' } },
    ['service_tier'],
  ],
  [
    'a success whose document is an error',
    has('verbosity'),
    200,
    { error: { message: "got an unexpected keyword argument 'verbosity'" } },
    ['verbosity'],
  ],
  [
    'several at once, and the same text until all are gone',
    (body) => body.store !== undefined || body.verbosity !== undefined,
    400,
    { error: { message: "drop these: ['store', 'verbosity']" } },
    ['store', 'verbosity'],
  ],
  [
    'a member of a tool',
    (body) => toolList(body).some((tool) => tool.function.strict !== undefined),
    422,
    { detail: [{ loc: ['body', 'tools', 0, 'FunctionTool', 'function', 'strict'], msg: 'no' }] },
    ['tools[].function.strict'],
  ],
  [
    'a member of a message',
    (body) => messageList(body).some((message) => message.reasoning_content !== undefined),
    400,
    { error: { message: "'messages.1': property 'reasoning_content' is unsupported" } },
    ['messages[].reasoning_content'],
  ],
];

export const asked = {
  ...question,
  messages: [
    { role: 'user', content: 'hello' },
    { role: 'assistant', content: 'hi', reasoning_content: 'They greet.' },
    { role: 'user', content: 'go on' },
  ],
  tools: [bashTool],
  temperature: 0.2,
  store: false,
  verbosity: 'low',
  service_tier: 'auto',
  reasoning_effort: 'high',
  parallel_tool_calls: true,
  stream_options: { include_usage: true },
};
