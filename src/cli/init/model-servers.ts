import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { z } from 'zod';
import { localModelServers } from '../../bounds/anybody.ts';
import { parseForeignJson } from '../../parse-json.ts';

/** A server on this machine that lists models, as servers with the API of chat completions do. */
export interface ModelServer {
  /** `http://127.0.0.1:11434/v1` */
  baseUrl: string;
  /** The names of its models. At least one. */
  models: string[];
}

/** Where LM Studio, vLLM, llama.cpp, Ollama and SGLang listen unless they are told otherwise. */
export const usualPorts = [1234, 8000, 8080, 11_434, 30_000] as const;

/** Asks each port of the loopback address for models. Asks no other address, whatever a server answers. */
export async function findModelServers(ports: readonly number[]): Promise<ModelServer[]> {
  const asked = [...new Set(ports)].slice(0, localModelServers.count.ports);
  const found = await Promise.all(asked.map((port) => modelsOf(`http://127.0.0.1:${port}/v1`)));
  return found.filter((server) => server !== undefined);
}

const Models = z.object({ data: z.array(z.object({ id: z.string() })) });

/** A name goes into a file and onto the screen, so unusual ones are left out. */
const plainName = /^[\w@][\w.:/@+-]{0,199}$/;

async function modelsOf(baseUrl: string): Promise<ModelServer | undefined> {
  try {
    const { data } = Models.parse(parseForeignJson(await answerOf(`${baseUrl}/models`)));
    const models = data.map(({ id }) => id).filter((id) => plainName.test(id));
    return models.length > 0
      ? { baseUrl, models: models.slice(0, localModelServers.count.models) }
      : undefined;
  } catch {
    // Nothing listens there, or something else than a model server.
    return undefined;
  }
}

/** The body of an answer with status 200. An agent of its own uses no proxy of the environment. */
async function answerOf(url: string): Promise<string> {
  const signal = AbortSignal.timeout(localModelServers.time.answer);
  const asking = get(url, { agent: new Agent(), signal });
  const [response] = (await once(asking, 'response', { signal })) as [IncomingMessage];
  try {
    if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const piece of response as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > localModelServers.bytes.list) throw new Error('too long');
      pieces.push(piece);
    }
    return Buffer.concat(pieces).toString('utf8');
  } finally {
    response.destroy();
  }
}
