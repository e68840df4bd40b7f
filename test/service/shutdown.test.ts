import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { openTestService, report, startRun } from './test-service.ts';

test('closing lets a request under way end, and its report is stored', async () => {
  const service = openTestService();
  const { port, url } = await service.service.listen();
  const run = await startRun(service);
  const body = JSON.stringify(report(run));
  const socket = connect(port, '127.0.0.1').setEncoding('utf8');
  socket.write(
    `POST /v1/evals.reportTrial HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  );
  // The service has begun the request, and waits for its body.
  expect(String(await once(socket, 'data'))).toContain('100 Continue');
  const closed = service.service.close();
  socket.write(body);
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  expect(answer).toContain('200 OK');
  await closed;
  await expect(fetch(url)).rejects.toThrow();

  await using again = openTestService(service.folder);
  const { runs } = await again.succeed('evals.runs.list', { caseId: 'csv' });
  expect(runs[0]?.status).toBe('running');
});

test('closing does not wait for connections that are idle', async () => {
  await using service = openTestService();
  const { port } = await service.service.listen();
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  await Promise.all([once(socket.resume(), 'close'), service.service.close()]);
});

test('a report that is being written in this process is not lost by closing', async () => {
  const service = openTestService();
  const run = await startRun(service);
  const reported = service.ask('evals.reportTrial', report(run));
  // It has been decoded and waits for its commit.
  await new Promise((resolve) => process.nextTick(resolve));
  await service.service.close();
  const { status } = await reported.catch(() => ({ status: 'refused' }));
  await using again = openTestService(service.folder);
  const { runs } = await again.succeed('evals.runs.list', { caseId: 'csv' });
  expect(runs[0]?.status).toBe(status === 200 ? 'running' : 'queued');
});

test('closing twice is closing once', async () => {
  await using service = openTestService();
  await service.service.listen();
  await Promise.all([service.service.close(), service.service.close()]);
});

test('a port that is taken, or an address of another machine, is an error that says what to do', async () => {
  await using service = openTestService();
  const { port } = await service.service.listen();
  await expect(service.service.listen({ port })).rejects.toMatchObject({
    code: 'ADDRESS_UNUSABLE',
    kind: 'input',
    hint: expect.stringContaining('another port'),
  });
  // An address of the documentation's network, which no machine has.
  await expect(service.service.listen({ host: '192.0.2.1' })).rejects.toMatchObject({
    code: 'ADDRESS_UNUSABLE',
    hint: 'Name an address of this machine.',
  });
});
