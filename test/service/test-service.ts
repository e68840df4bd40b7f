import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import type { Clock } from '../../src/base/clock.ts';
import type { Integration } from '../../src/contract/catalog.ts';
import { type Permission, permissions } from '../../src/contract/definition.ts';
import type { DecodeErrorBody } from '../../src/contract/errors.ts';
import type { OperationName, ResponseOf } from '../../src/contract/operations.ts';
import type { RunRecord } from '../../src/contract/record.ts';
import type { Auditor, Platform } from '../../src/service/platform.ts';
import { openService, type Service } from '../../src/service/service.ts';

export interface Answer {
  status: number;
  headers: Headers;
  body: unknown;
}

/** A service over a folder of its own, with a key that may do everything. */
export interface TestService extends AsyncDisposable {
  service: Service;
  folder: string;
  key: string;
  clock: TestClock;
  /** Every line logged, as JSON text. */
  logged: string[];
  /** Asks an operation in this process; a string and bytes are sent as they stand. */
  ask(operation: string, body: unknown, key?: string, type?: string): Promise<Answer>;
  /** As `ask`, where success is expected. */
  succeed<Name extends OperationName>(
    operation: Name,
    body: unknown,
    key?: string,
  ): Promise<ResponseOf<Name>>;
  /** As `ask`, where a 400 is expected. */
  issues(operation: OperationName, body: unknown): Promise<DecodeErrorBody['issues']>;
  keyFor(organization: string, ...allowed: Permission[]): string;
}

export interface TestClock extends Clock {
  advance(ms: number): void;
}

/** Stands still until it is advanced; its sleeps last until they are aborted. */
export function stillClock(): TestClock {
  let now = Date.parse('2026-03-01T12:00:00Z');
  return {
    now: () => now,
    monotonic: () => now,
    advance: (ms) => {
      now += ms;
    },
    sleep: (_, signal) =>
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
  };
}

export const integrations: Integration[] = [
  {
    id: 'command',
    label: 'A command',
    category: 'harness',
    authMethods: [
      {
        id: 'key',
        label: 'API key',
        kind: 'secret',
        fields: [{ name: 'apiKey', label: 'API key', required: true, secret: true }],
      },
    ],
  },
];

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'offsite-service-'));
}

/** A folder that is removed at the end of the block. */
export function folderForTest() {
  const path = temporaryFolder();
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** @param platform what runs the trials of platform batches, if anything does */
export function openTestService(
  folder = temporaryFolder(),
  platform?: Platform,
  auditor?: Auditor,
): TestService {
  const logged: string[] = [];
  const lines = new Writable({
    write(line, _, done) {
      logged.push(String(line));
      done();
    },
  });
  const clock = stillClock();
  const service = openService({
    dataFolder: folder,
    clock,
    integrations,
    ...(platform && { platform }),
    ...(auditor && { auditor }),
    log: pino({ level: 'info' }, lines),
  });
  const keyFor = (organization: string, ...allowed: Permission[]) =>
    service.createKey({ organization, permissions: allowed }).secret;
  const key = keyFor('Acme', ...permissions);

  async function ask(
    operation: string,
    body: unknown,
    asking = key,
    type = 'application/json',
  ): Promise<Answer> {
    const answer = await service.fetch(
      new Request(`http://service.test/v1/${operation}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${asking}`, 'content-type': type },
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      }),
    );
    return { status: answer.status, headers: answer.headers, body: await answer.json() };
  }

  return {
    service,
    folder,
    key,
    clock,
    logged,
    ask,
    keyFor,
    async succeed(operation, body, asking = key) {
      const answer = await ask(operation, body, asking);
      if (answer.status === 200) return answer.body as never;
      throw new Error(`${operation} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    },
    async issues(operation, body) {
      const answer = await ask(operation, body);
      if (answer.status === 400) return (answer.body as DecodeErrorBody).issues;
      throw new Error(`${operation} answered ${answer.status}, not 400: ${JSON.stringify(answer.body)}`);
    },
    async [Symbol.asyncDispose]() {
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A small start request; `change` replaces fields of it. */
export function startRequest(change: Record<string, unknown> = {}) {
  return {
    suite: { id: 'parsers', name: 'Parsers', prompt: 'Mend the parser.' },
    cases: [{ id: 'csv', name: 'CSV' }],
    variants: [{ model: 'small' }],
    trials: 2,
    local: true,
    ...change,
  };
}

/** A report of a trial of the case of `startRequest`; `outcome` replaces what it found. */
export function report(
  id: string | undefined,
  ordinal = 0,
  outcome: Record<string, unknown> = { passed: true, commandCount: 1 },
  change: Record<string, unknown> = {},
) {
  return {
    id,
    trial: {
      caseName: 'CSV',
      ordinal,
      taskIndex: 0,
      events: [{ _tag: 'Started', model: 'small', sessionId: 'session', at: 1_772_366_400_000 }],
      outcome,
      ...change,
    },
  };
}

/** Starts the small request and returns the id of its first run. */
export async function startRun(service: TestService, change: Record<string, unknown> = {}): Promise<string> {
  const { runs } = await service.succeed('evals.start', startRequest(change));
  return runs[0]?.id ?? '';
}

export async function onlyRun(service: TestService, caseId = 'csv'): Promise<RunRecord> {
  const { runs } = await service.succeed('evals.runs.list', { caseId });
  const [run] = runs;
  if (!run || runs.length > 1) throw new Error(`${caseId} has ${runs.length} runs, not one`);
  return run;
}

/** A report of any content, changed so that it does not contradict itself; other requests as they are. */
export function withoutContradictions(request: unknown): unknown {
  const amounts =
    /^(\w+Tokens|costUsd|commandCount|modelMs|sandboxMs|durationMs|index|at|startedAt|\w+edAtMillis)$/;
  const changed = JSON.parse(JSON.stringify(request), (name, value) =>
    typeof value === 'number' && amounts.test(name) ? Math.abs(value) % 1e6 : value,
  );
  const outcome = changed?.trial?.outcome;
  if (Array.isArray(outcome?.validations))
    for (const [index, one] of outcome.validations.entries())
      if (typeof one?.id === 'string') one.id += `#${index}`;
  if (
    outcome?.passed === true &&
    outcome.verifySteps?.some((step: { exitCode: unknown }) => step.exitCode !== 0)
  )
    outcome.passed = false;
  return changed;
}
