import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { ReportRequest } from '../../src/contract/report.ts';

const program = fileURLToPath(new URL('../service/service-program.ts', import.meta.url));

/**
 * What becomes of one request: it is passed on, refused with a status, or cut before or after the service has
 * acted.
 */
export type Fate = 'pass' | 'cut-before' | 'cut-after' | number;

/** The real service in a process of its own, behind a front where answers get lost. */
export interface FaultFront extends AsyncDisposable {
  url: string;
  key: string;
  /** Decides about each request; passes all unless it is set. */
  fate: (operation: string) => Fate;
  /** Operations asked for, in order. */
  asked: string[];
  /** Hashes of the reports that the service accepted, by run and ordinal: one each, however often it came. */
  accepted: Map<string, Set<string>>;
  ask(operation: string, body: unknown): Promise<Record<string, unknown>>;
}

/** @param claims whether the service says that it has claims: whether its `/openapi.json` can be read */
export async function openFaultFront(folder: string, { claims = false } = {}): Promise<FaultFront> {
  const key = 'ofs_fault_tests_key_0123456789';
  const service = fork(program, [folder, key], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const [serviceUrl] = await once(service, 'message', { signal: AbortSignal.timeout(60_000) });
  const accepted = new Map<string, Set<string>>();
  const asked: string[] = [];
  const pass = async (operation: string, body: string, authorization: string) => {
    const headers = { authorization, 'content-type': 'application/json' };
    const answer = await fetch(`${serviceUrl}/v1/${operation}`, { method: 'POST', headers, body });
    if (operation === 'evals.reportTrial' && answer.ok) {
      const { id, trial } = JSON.parse(body) as ReportRequest;
      const name = `${id}/${trial.ordinal}`;
      const hash = createHash('sha256').update(JSON.stringify(trial)).digest('hex');
      accepted.set(name, (accepted.get(name) ?? new Set()).add(hash));
    }
    return answer;
  };
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') {
      const answer = claims ? await fetch(`${serviceUrl}${request.url}`) : new Response('', { status: 404 });
      return response.writeHead(answer.status, headersOf(answer)).end(await answer.text());
    }
    const operation = request.url?.split('/').at(-1) ?? '';
    asked.push(operation);
    const body = await text(request);
    const fate = front.fate(operation);
    if (typeof fate === 'number') {
      const refusal = JSON.stringify({ _tag: 'Trouble', message: `made to answer ${fate}` });
      return response.writeHead(fate, { 'content-type': 'application/json' }).end(refusal);
    }
    if (fate === 'cut-before') return response.socket?.destroy();
    const answer = await pass(operation, body, request.headers.authorization ?? '');
    const answered = await answer.text();
    if (fate === 'cut-after') return response.socket?.destroy();
    return response.writeHead(answer.status, headersOf(answer)).end(answered);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const front: FaultFront = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    key,
    fate: () => 'pass',
    asked,
    accepted,
    async ask(operation, body) {
      const answer = await pass(operation, JSON.stringify(body), `Bearer ${key}`);
      return answer.json() as Promise<Record<string, unknown>>;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      if (service.exitCode !== null || service.signalCode !== null) return;
      const gone = once(service, 'exit');
      service.kill('SIGKILL');
      await gone;
    },
  };
  return front;
}

function headersOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => ['content-type', 'retry-after'].includes(name)));
}
