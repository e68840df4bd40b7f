import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DecodeErrorBody, ErrorBody } from '../../src/contract/errors.ts';
import { type OperationName, operations } from '../../src/contract/operations.ts';
import { RunsResponse } from '../../src/contract/record.ts';
import type { ReportedTrial } from '../../src/contract/report.ts';
import { runs } from '../short-tests.ts';
import { anyJson, type Known, requestsOf } from './requests.ts';
import { fullRecord, testPlatform } from './test-platform.ts';
import {
  type Answer,
  openTestService,
  startRequest,
  startRun,
  type TestService,
  withoutContradictions,
} from './test-service.ts';

let service: TestService;
let known: Known;
const names = Object.keys(operations) as OperationName[];

beforeAll(async () => {
  service = openTestService(undefined, testPlatform());
  const batch = await service.succeed('evals.start', startRequest({ trials: 10 }));
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  const variant = runs[0]?.variant?.id;
  const platform = await service.succeed('evals.start', startRequest({ local: false }));
  await service.service.platform.complete(platform.runs[0]?.id ?? '', 0, fullRecord());
  await service.succeed('prompts.write', { id: batch.id, content: 'p' });
  known = {
    id: [batch, platform].flatMap(({ id, runs }) => [id, ...runs.map((run) => run.id)]),
    caseId: ['csv'],
    caseName: ['CSV', 'csv'],
    variant: [variant, 'small'],
    cellKey: [`csv:${variant}`],
    ordinal: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    local: [true],
    channel: ['live'],
    version: [1],
  };
});

afterAll(() => service[Symbol.asyncDispose]());

/** Whether the answer is one that the table documents for the operation, in the documented shape. */
function expectDocumented(name: OperationName, { status, body }: Answer): void {
  const { response, errors } = operations[name];
  expect([200, 401, ...errors]).toContain(status);
  expect(status).not.toBe(500);
  if (status === 200) response.parse(body);
  else if (status === 400) expect(DecodeErrorBody.parse(body).issues.length).toBeGreaterThan(0);
  else ErrorBody.parse(body);
}

test.for(names)('%s answers any request that its document allows as documented', async (name) => {
  await fc.assert(
    fc.asyncProperty(requestsOf(name, known), async (generated) => {
      const request = withoutContradictions(generated);
      const answer = await service.ask(name, request);
      expectDocumented(name, answer);
      const decoded = operations[name].request.safeParse(JSON.parse(JSON.stringify(request)));
      // A body that decodes may still name one case twice.
      if (answer.status === 400 && name !== 'evals.start') expect(decoded.success).toBe(false);
      if (!decoded.success) expect(answer.status).toBe(400);
    }),
    { numRuns: runs(150) },
  );
});

test.for(names)('%s answers any JSON at all as documented', async (name) => {
  await fc.assert(
    fc.asyncProperty(anyJson, async (body) => {
      const answer = await service.ask(name, JSON.stringify(body));
      expectDocumented(name, answer);
      if (!operations[name].request.safeParse(body).success) expect(answer.status).toBe(400);
    }),
    { numRuns: runs(50) },
  );
});

test('any bytes at all are answered, and never with 500', async () => {
  const { service: target, key } = service;
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names), fc.uint8Array({ maxLength: 200 }), async (name, body) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const request = new Request(`http://service.test/v1/${name}`, { method: 'POST', headers, body });
      const { status } = await target.fetch(request);
      expect([200, 400]).toContain(status);
    }),
    { numRuns: runs(500) },
  );
});

test('what a report says comes back from the run as it was sent, whatever characters are in it', async () => {
  const reports = requestsOf('evals.reportTrial', { ...known, ordinal: [0], taskIndex: [0] });
  await fc.assert(
    fc.asyncProperty(reports, async (generated) => {
      const id = await startRun(service, { cases: [{ id: 'back', name: 'CSV' }], trials: 1 });
      const request = withoutContradictions({ ...(generated as object), id }) as {
        trial: Record<string, unknown>;
      };
      request.trial.caseName = 'CSV';
      request.trial.ordinal = 0;
      if (!operations['evals.reportTrial'].request.safeParse(request).success) return;
      await service.succeed('evals.reportTrial', request);
      const { runs } = RunsResponse.parse(await service.succeed('evals.runs.list', { caseId: 'back' }));
      const { outcome, usage, events, sandboxId } = request.trial as ReportedTrial;
      const { artifacts, verifySteps, voidFields, exitCode, modelMs, sandboxMs, commandCount } = outcome;
      const sent = { artifacts, verifySteps, voidFields, exitCode, modelMs, sandboxMs, usage, sandboxId };
      const trial = runs[0]?.trials?.[0];
      expect(runs[0]?.id).toBe(id);
      expect(trial).toMatchObject(JSON.parse(JSON.stringify({ ...sent, commands: commandCount })));
      expect(trial?.trajectory).toEqual(events.filter(({ _tag }) => _tag === 'command'));
      expect(trial?.validations?.length ?? 0).toBeGreaterThanOrEqual(outcome.validations?.length ?? 0);
    }),
    { numRuns: runs(150) },
  );
});
