import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { systemClock } from '../../src/base/clock.ts';
import { permissions } from '../../src/contract/definition.ts';
import { copyDatabase } from '../../src/ledger/database.ts';
import { openService, serviceDatabase } from '../../src/service/service.ts';
import type { Place } from './place.ts';

/** A real Eval Service behind a front that can be told to answer 503 to some of the operations. */
export interface FlakyService extends AsyncDisposable {
  /** What the command line needs to use it. */
  env: { OFFSITE_URL: string; OFFSITE_API_KEY: string };
  /** Operations that are down. */
  down: Set<string>;
  /** Operations that the front answers with success, without asking the service. */
  swallowed: Set<string>;
  /** Operations that are refused, and the conflicts they get. */
  refuse: Map<string, { _tag: 'Conflict'; message: string }>;
  /** Operations that the key may not use. */
  forbidden: Set<string>;
  /** Changes answers on their way. */
  alter: ((operation: string, body: string) => string) | undefined;
  /** Operations asked for, in order. */
  asked: string[];
  ask(operation: string, body: unknown): Promise<unknown>;
  /** Copies the service's database to a file. */
  backUp(file: string): void;
  /** Continues with such a copy, as after a restore, and serves it. */
  restore(file: string): Promise<void>;
}

export async function openFlakyService(place: Place): Promise<FlakyService> {
  const dataFolder = join(place.folder, 'service');
  const open = () => openService({ dataFolder, clock: systemClock, integrations: [] });
  let service = open();
  const { secret } = service.createKey({ organization: 'Acme', permissions });
  const down = new Set<string>();
  const swallowed = new Set<string>();
  const refuse: FlakyService['refuse'] = new Map();
  const forbidden = new Set<string>();
  const lacking = { _tag: 'Forbidden', message: 'The API key lacks the permission evals:write.' };
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const operation = request.url?.split('/').at(-1) ?? '';
    asked.push(operation);
    const body = await text(request);
    const refusal = refuse.get(operation);
    const answer = down.has(operation)
      ? Response.json({ _tag: 'Unavailable', message: 'down for repairs' }, { status: 503 })
      : swallowed.has(operation)
        ? Response.json({})
        : forbidden.has(operation)
          ? Response.json(lacking, { status: 403 })
          : refusal
            ? Response.json(refusal, { status: 409 })
            : await service.fetch(forward(request, body));
    const said = await answer.text();
    const retryAfter = answer.headers.get('retry-after');
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      ...(retryAfter !== null && { 'retry-after': retryAfter }),
    });
    response.end(flaky.alter?.(operation, said) ?? said);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const flaky: FlakyService = {
    alter: undefined,
    env: { OFFSITE_URL: url, OFFSITE_API_KEY: secret },
    down,
    swallowed,
    refuse,
    forbidden,
    asked,
    async ask(operation, body) {
      const headers = { authorization: `Bearer ${secret}` };
      const asked = { method: 'POST', url: `/v1/${operation}`, headers };
      const answer = await service.fetch(forward(asked, JSON.stringify(body)));
      return answer.json();
    },
    backUp: (file) => copyDatabase(join(dataFolder, serviceDatabase), file),
    async restore(file) {
      await service.close();
      rmSync(dataFolder, { recursive: true });
      mkdirSync(dataFolder, { mode: 0o700 });
      copyFileSync(file, join(dataFolder, serviceDatabase));
      service = open();
      await service.listen();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await service.close();
    },
  };
  return flaky;
}

function forward(
  { method, url = '', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>,
  body: string,
): Request {
  return new Request(`http://service.test${url}`, {
    method,
    headers: { authorization: headers.authorization ?? '', 'content-type': 'application/json' },
    ...(method === 'POST' && { body }),
  });
}
