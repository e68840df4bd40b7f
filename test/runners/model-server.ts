import { appendFileSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type Answer, eventsOf, type SseEvent, type ToolUse, type Wire, wholeOf } from './model-wires.ts';

/**
 * A model that answers from a script, in all four wires, for harnesses under test:
 * `node model-server.ts PORT SCRIPT LOG`. It runs inside the sandbox, beside the harness, so it imports
 * nothing but the file beside it. The script is read anew for each request, so that a test can change it;
 * requests are logged as one JSON object a line.
 */

/** One answer. Requests without tools (titles, summaries) get a fixed text and take no turn. */
export type ModelTurn =
  /** `commands` go to whatever shell tool the harness offers; `calls` to tools by name. */
  | { thought?: string; text?: string; commands?: string[]; calls?: ToolUse[] }
  /** A text for a harness that never offers tools: with one such turn, all requests take turns. */
  | { plain: string }
  /** An HTTP error, for this and all further requests, or for `times` of them. */
  | { status: number; message?: string; times?: number }
  /** Nothing, for ever. */
  | { hang: true }
  /** The beginning of a stream, and then the end of the connection. */
  | { cut: true };

/** Every shell tool the harnesses have, and the argument that takes the command. */
const shellTools: Record<string, string> = {
  exec_command: 'cmd',
  Bash: 'command',
  bash: 'command',
  run_shell_command: 'command',
  terminal: 'command',
  run_commands: 'commands',
};

const submitMarker = 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';

const [, , port, scriptFile = '', logFile = ''] = process.argv;
if (port !== undefined) serve(Number(port));

function serve(onPort: number): void {
  let answered = 0;
  let troubles = 0;
  createServer(async (request, response) => {
    const body = await readBody(request);
    const { method, url = '', headers } = request;
    const wire = method === 'POST' ? wireOf(url) : undefined;
    appendFileSync(logFile, `${JSON.stringify({ method, url, wire, headers, body })}\n`);
    if (wire === undefined) return void response.writeHead(404).end();
    const asked = pathedModel(url) ?? { model: String(body.model), streamed: body.stream === true };
    const names = toolNames(body);
    const turns: ModelTurn[] = JSON.parse(readFileSync(scriptFile, 'utf8'));
    if (names.length === 0 && !turns.some((turn) => 'plain' in turn))
      return send(response, wire, asked, { text: 'Title', uses: [] });
    const turn = turns[answered] ?? { text: 'Nothing is left to do.' };
    if ('hang' in turn) return;
    if ('status' in turn) {
      troubles += 1;
      if (troubles === turn.times) answered += 1;
      response.writeHead(turn.status, { 'content-type': 'application/json' });
      const error = { type: 'api_error', message: turn.message ?? `trouble ${turn.status}` };
      return void response.end(JSON.stringify({ type: 'error', error }));
    }
    if ('cut' in turn) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(frame(eventsOf[wire]({ text: 'I was about to', uses: [] }, 'scripted')[0]));
      return void setImmediate(() => response.destroy());
    }
    answered += 1;
    if ('plain' in turn) return send(response, wire, asked, { text: turn.plain, uses: [] });
    const shell = names.find((name) => name in shellTools) ?? 'none';
    // mini-swe-agent takes no answer without a command. This one ends its turn.
    const ends = turn.text !== undefined && turn.commands === undefined && turn.calls === undefined;
    const submits = ends && JSON.stringify(body).includes(submitMarker);
    const uses = [
      ...(turn.commands ?? (submits ? [`echo ${submitMarker}`] : [])).map((command) => ({
        name: shell,
        arguments: {
          [shellTools[shell] ?? '']: shell === 'run_commands' ? [command] : command,
          ...extra(shell),
        },
      })),
      ...(turn.calls ?? []).map((call) => addressed(call, body, shell)),
    ].map((use, index) => ({ ...use, id: `call_${answered}_${index}` }));
    send(response, wire, asked, { thought: turn.thought, text: turn.text ?? '', uses });
  }).listen(onPort, '127.0.0.1');
}

/**
 * A call by the name that the harness offers the tool by: each puts the name of the tool's server before it
 * in its own way.
 */
function addressed(call: ToolUse, body: Record<string, unknown>, shell: string): ToolUse {
  const { server, name } = call;
  if (server === undefined) return call;
  // OpenHands names no server if there is one only, and wants some arguments for all tools.
  if (shell === 'terminal') return { ...call, arguments: { ...extra(shell), ...call.arguments } };
  const full = `mcp__${server}__${name}`;
  const tools = Array.isArray(body.tools) ? body.tools : [];
  if (tools.some((tool) => tool.type === 'namespace' && tool.name === `mcp__${server}`)) {
    return { ...call, namespace: `mcp__${server}` };
  }
  const forms = [`${server}_${name}`, `${server}__${name}`, `mcp_${server}_${name}`, `${server}-${name}`];
  return { ...call, name: toolNames(body).find((offered) => forms.includes(offered)) ?? full };
}

function extra(shell: string): Record<string, unknown> {
  if (shell === 'terminal') return { security_risk: 'LOW', summary: 'Run a command' };
  return shell === 'run_shell_command' ? { is_background: false } : {};
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
}

function wireOf(url: string): Wire | undefined {
  const [path] = url.split('?');
  if (path === '/v1/chat/completions') return 'chat';
  if (path === '/v1/responses') return 'responses';
  if (path === '/v1/messages') return 'messages';
  return pathedModel(url) === undefined ? undefined : 'gemini';
}

/** The model that a path of the Gemini API names, and whether its answer is a stream. */
function pathedModel(url: string): { model: string; streamed: boolean } | undefined {
  const [, model, verb] =
    /^\/v1beta\/models\/([^:]+):(generateContent|streamGenerateContent\?alt=sse)$/.exec(url) ?? [];
  return model === undefined ? undefined : { model, streamed: verb !== 'generateContent' };
}

function toolNames(body: Record<string, unknown>): string[] {
  const tools = Array.isArray(body.tools) ? body.tools : [];
  return tools
    .flatMap((tool) => tool.functionDeclarations ?? [tool])
    .map((tool) => tool.function?.name ?? tool.name)
    .filter((name) => typeof name === 'string');
}

interface Asked {
  model: string;
  streamed: boolean;
}

function send(response: ServerResponse, wire: Wire, { model, streamed }: Asked, answer: Answer): void {
  const events = eventsOf[wire](answer, model);
  if (streamed) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of events) response.write(frame(event));
    return void response.end(wire === 'chat' ? 'data: [DONE]\n\n' : undefined);
  }
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(wholeOf[wire](answer, model)));
}

function frame(event: SseEvent | undefined): string {
  if (event === undefined) return '';
  const [name, data] = event;
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}
