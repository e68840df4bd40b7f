import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { execa, type ResultPromise } from 'execa';
import { temporal } from '../../scripts/set-up/test-servers.ts';
import { findProgram } from '../../scripts/set-up/wheel-program.ts';
import { freePort } from '../free-port.ts';

/** A real Temporal server with a database file, so that it can be killed and started again. */
export interface TemporalServer extends AsyncDisposable {
  address: string;
  port: number;
  /** Where it serves what it counts, in the text format of Prometheus. */
  metrics: string;
  /** Kills it as a machine that loses power would, and resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again, on the same port and the same database. */
  start(): Promise<void>;
}

/** @param folder keeps the database */
export async function openTemporal(folder: string): Promise<TemporalServer> {
  const program = await findProgram(temporal, process.env);
  if (program === undefined) throw new Error('no temporal program: run `npm test` once, which brings it');
  const port = await freePort();
  const metricsPort = await freePort();
  const address = `127.0.0.1:${port}`;
  let running: ResultPromise<{ reject: false; stdin: 'ignore'; all: true }> | undefined;
  const server: TemporalServer = {
    address,
    port,
    metrics: `http://127.0.0.1:${metricsPort}/metrics`,
    async start() {
      const database = ['--db-filename', join(folder, 'temporal.db')];
      const ports = ['--ip', '127.0.0.1', '--port', String(port), '--metrics-port', String(metricsPort)];
      const args = ['server', 'start-dev', '--headless', ...ports, ...database, '--log-level', 'error'];
      const child = execa(program, args, {
        reject: false,
        stdin: 'ignore',
        all: true,
      });
      running = child;
      let said: string | undefined;
      void child.then(({ all }) => {
        said = all;
      });
      for (const end = Date.now() + 60_000; ; ) {
        try {
          const connection = await Connection.connect({ address, connectTimeout: 2_000 });
          const { workflowService } = connection;
          await workflowService.describeNamespace({ namespace: 'default' });
          await connection.close();
          return;
        } catch (error) {
          if (said !== undefined) throw new Error(`the Temporal server ended: ${said}`, { cause: error });
          if (Date.now() > end) throw error;
          await new Promise((resolve) => setTimeout(resolve, 200));
        }
      }
    },
    async kill() {
      running?.kill('SIGKILL');
      await running;
    },
    [Symbol.asyncDispose]: () => server.kill(),
  };
  await server.start();
  return server;
}
