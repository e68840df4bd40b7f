import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { attacks, hostileName, hostileText } from './hostile-text.ts';

export interface Party extends AsyncDisposable {
  url: string;
  port: number;
}

/**
 * A service whose answers are valid, but every text in them is an attack. `refusing`: it refuses everything,
 * with reasons.
 */
export async function hostileService(refusing: 'nothing' | 'all' | 'at-length' = 'nothing'): Promise<Party> {
  const issue = { _tag: hostileText, path: [hostileText, attacks.stop], message: attacks.lineStop };
  const refusal = { _tag: hostileText, message: hostileText, issues: [issue] };
  const long = {
    _tag: 'Conflict',
    message: `${'x'.repeat(2_000_000)}${hostileText}`,
    issues: Array(500).fill(issue),
  };
  return party(async (operation) => {
    if (refusing === 'all') return { status: 409, body: refusal };
    if (refusing === 'at-length') return { status: 409, body: long };
    return { status: 200, body: answers[operation] ?? {} };
  });
}

/** A model, and an engine, that has nothing to say but this. */
export function refusingParty(): Promise<Party> {
  const message = `${attacks.stop} ${hostileText}\n${attacks.lineV1}`;
  return party(async () => ({ status: 400, body: { message, error: { message, type: attacks.osc52 } } }));
}

const each = Object.values(attacks);

const answers: Record<string, unknown> = {
  'auth.whoami': {
    credential: { kind: 'apiKey', name: hostileText, start: attacks.osc52 },
    organization: { id: attacks.stop, name: hostileText, slug: attacks.lineStop },
    permissions: ['evals:read', 'evals:write'],
  },
  'connectors.integrations': each.map((attack) => ({
    id: attack,
    label: attack,
    category: attack,
    authMethods: [
      {
        id: attack,
        label: attack,
        kind: attack,
        fields: [{ name: attack, label: attack, required: true, secret: true }],
      },
    ],
  })),
  'evals.cases.list': {
    cases: [...each, '', ' ', 'x'.repeat(5_000_000)].map((attack) => ({
      id: attack,
      name: attacks.stop,
      suite: { id: attack, name: attack },
      tags: [attack, attacks.stop],
    })),
  },
  'evals.runs.list': {
    page: 1,
    pageSize: 20,
    total: 1,
    runs: [...each, ''].map((attack) => ({
      id: attack,
      batchId: attacks.stop,
      variant: { id: attack, model: attack, harness: attack },
      status: attack,
      local: true,
      startedAt: attack,
    })),
  },
  // Answers of a model, and the list of a server of models.
  completions: {
    model: hostileName,
    choices: [
      { index: 0, message: { role: 'assistant', content: each.join('\n') }, finish_reason: attacks.stop },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  },
  version: { version: hostileText },
  tags: { models: each.map((attack) => ({ model: attack })) },
  show: { parameters: hostileText, model_info: { 'general.architecture': hostileText }, capabilities: each },
  models: { object: 'list', data: each.map((attack) => ({ id: attack.slice(0, 200), owned_by: attack })) },
  'evals.rerunCell': { id: attacks.lineStop },
  'prompts.get': { id: 'p', version: 1, content: each.join('\n'), channels: each },
  'prompts.promote': { id: hostileText, channel: hostileText, version: 1 },
  'prompts.write': { id: hostileText, version: 2, content: hostileText },
};

async function party(
  answer: (operation: string) => Promise<{ status: number; body: unknown }>,
): Promise<Party> {
  const server = createServer(async (request, response) => {
    await text(request);
    const { status, body } = await answer(request.url?.split('/').at(-1) ?? '');
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => closed(server) };
}

/** A daemon's socket that answers everything with attacks. */
export async function hostileSocket(path: string): Promise<AsyncDisposable> {
  const run = { case: attacks.stop, run: hostileText, reason: attacks.lineStop };
  const status = {
    pid: 1,
    mode: attacks.stop,
    blocked: hostileText,
    upMs: 1,
    service: hostileText,
    engine: hostileText,
    dataFolder: hostileText,
    concurrency: 1,
    queued: 1,
    running: [{ ...run, batch: hostileText, ordinal: 0, phase: attacks.v1, forMs: 1 }],
    waiting: [run],
    parked: [run],
    refused: [{ file: hostileText, reason: attacks.lineStop }],
    finished: { passed: 0, failed: 0, void: 0 },
    limits: [{ model: hostileText, limit: 1, most: 2, inFlight: 3 }],
    outbox: { queued: 0, sent: 0, parked: 0, oldestMs: undefined },
    polls: [
      { place: attacks.stop, trouble: attacks.lineStop },
      { place: ':', trouble: ':stop-commands::x' },
    ],
    health: { ok: false, troubles: [hostileText, attacks.lineStop] },
    residentBytes: 1,
    message: attacks.stop,
  };
  const server = createServer((request, response) => {
    const refused = request.url?.includes('cancel');
    response.writeHead(refused ? 404 : 200).end(JSON.stringify(status));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { [Symbol.asyncDispose]: () => closed(server) };
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
