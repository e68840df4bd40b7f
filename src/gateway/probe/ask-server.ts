import { ByteStore } from '../../base/byte-store.ts';
import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError, type OffsiteError } from '../../base/offsite-error.ts';
import { serverFacts } from '../../bounds/model.ts';
import type { Wire } from '../../suite/model-config.ts';
import type { Upstream, UpstreamAnswer } from '../answer.ts';
import { list, member, objectsOf, parsed, stringIn, tokensIn } from '../wires/lenient.ts';
import { usualWire, wireTable } from '../wires/wire-table.ts';
import { modelWith, type ServerModel } from './server-models.ts';

/** A server's answer to a question about itself. */
export interface ServerAnswer {
  status: number;
  /** The body if it is JSON. */
  document: unknown;
  text: string;
}

export interface Question {
  /** The path and query below the base URL. */
  path: string;
  /** The body of a POST. Without it, the request is a GET. */
  body?: object;
  /** The wire whose header carries the key. Default: the usual one. */
  wire?: Wire;
}

/** Rejects if the server cannot be reached, or its answer is too large or too late. */
export type AskServer = (question: Question) => Promise<ServerAnswer>;

/** Asks a server, with a bound on time and size. Follows no redirects. */
export function askServer(
  upstream: Upstream,
  { clock, signal, within = serverFacts.time.answer }: { clock: Clock; signal: AbortSignal; within?: number },
): AskServer {
  return async ({ path, body, wire = usualWire.name }) => {
    using deadline = startDeadline(clock, within, signal, () => tooSlow(path, within));
    const answer = await upstream.send(
      {
        wire,
        path,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...wireTable[wire].headers,
        },
        body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
      },
      deadline.signal,
    );
    const text = await textOf(answer);
    return { status: answer.status, document: parsed(text), text };
  };
}

async function textOf({ body }: UpstreamAnswer): Promise<string> {
  const store = new ByteStore();
  for await (const chunk of body) {
    if (store.size + chunk.length > serverFacts.bytes.answer)
      throw unusable(`the answer of the server has more than ${serverFacts.bytes.answer} bytes`);
    store.add(chunk);
  }
  return store.take().toString('utf8');
}

function tooSlow(path: string, within: number): OffsiteError {
  return unusable(`the server did not answer ${path} within ${within / 1000} s`);
}

function unusable(message: string): OffsiteError {
  return infrastructureError('MODEL_SERVER_UNKNOWN', message, {
    hint: 'Check that the address is that of a model API.',
  });
}

/**
 * What Ollama reports about one model: the context that it is loaded with, or set to, and the one that it
 * could have. https://github.com/ollama/ollama/blob/main/docs/api.md
 */
export async function ollamaModel(ask: AskServer, id: string): Promise<ServerModel> {
  const [show, running] = await Promise.all([
    ask({ path: '/api/show', body: { model: id } }),
    ask({ path: '/api/ps' }),
  ]);
  const info = member(show.document, 'model_info');
  const capabilities = list(member(show.document, 'capabilities'));
  const longestContext = tokensIn(info, `${stringIn(info, 'general.architecture')}.context_length`);
  const loaded = objectsOf(member(running.document, 'models')).find(({ model }) => model === id);
  const set = /^num_ctx\s+(\d{1,9})\s*$/m.exec(stringIn(show.document, 'parameters') ?? '')?.[1];
  return {
    ...modelWith(id, {
      contextWindow: tokensIn(loaded, 'context_length') ?? (set === undefined ? undefined : Number(set)),
      longestContext,
    }),
    ...(capabilities.length > 0 && { tools: capabilities.includes('tools') }),
  };
}
