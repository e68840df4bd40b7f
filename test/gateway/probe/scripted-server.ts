import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { systemClock } from '../../../src/base/clock.ts';
import { scriptedUpstream } from '../../../src/gateway/scripted/scripted-upstream.ts';
import type { Wire } from '../../../src/suite/model-config.ts';
import type { Step, TestUpstream } from '../test-upstream.ts';
import { serverOf } from './model-servers.ts';

const paths: Readonly<Record<string, Wire>> = {
  '/v1/chat/completions': 'openai-chat',
  '/v1/responses': 'openai-responses',
  '/v1/messages': 'anthropic-messages',
};

/** A script of a model that does all that a check asks of it. */
export const ableModel = {
  turns: [
    {
      when: { tools: true, last: 'user' },
      calls: ['Lima', 'Oslo'].map((city) => ({ tool: 'lookup_code', arguments: { city } })),
    },
    { when: { last: 'tool' }, text: 'The codes are K7-4193 and Q2-8806.' },
    {
      when: { user: 'Sample' },
      text: 'one, two, three, four, five, six, seven, eight, nine, ten',
      stream: { characters: 6, pause: '5ms' },
      repeat: true,
    },
    { text: 'ready', repeat: true },
  ],
};

interface ScriptedServer extends TestUpstream {
  /** The paths of requests that a model answers, in order. */
  asked(): string[];
}

/**
 * A real HTTP server with a scripted model behind it.
 *
 * @param spoken the wires that it has routes for
 * @param routes its other routes
 */
export async function scriptedServer(
  script: object,
  {
    spoken = ['openai-chat'],
    routes = {},
  }: { spoken?: readonly Wire[]; routes?: Parameters<typeof serverOf>[0] } = {},
): Promise<ScriptedServer> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-script-'));
  const file = join(folder, 'script.yaml');
  writeFileSync(file, stringify(script));
  const upstream = scriptedUpstream(file, systemClock);
  const answer =
    (wire: Wire): Step =>
    async (response, { method, path, body }) => {
      const gone = new AbortController();
      response.on('close', () => gone.abort(new Error('the client has gone')));
      try {
        const below = path.replace('/v1', '');
        const given = await upstream.send({ wire, method, path: below, headers: {}, body }, gone.signal);
        response.writeHead(given.status, given.headers);
        for await (const chunk of given.body) {
          if (!response.write(chunk)) await once(response, 'drain', { signal: gone.signal });
        }
        response.end();
      } catch {
        response.destroy();
      }
    };
  const models = Object.entries(paths).filter(([, wire]) => spoken.includes(wire));
  const server = await serverOf({
    ...routes,
    ...Object.fromEntries(models.map(([path, wire]) => [`POST ${path}`, answer(wire)])),
  });
  return {
    ...server,
    asked: () => server.received.map(({ path }) => path).filter((path) => path in paths),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}
