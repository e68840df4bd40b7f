/**
 * Runs a validator module inside the sandbox: reads its order from stdin and prints a record for each of its
 * validations.
 */
import { registered } from './api.ts';
import { attempt, describe, LogCapture } from './attempt.ts';
import { Host } from './host.ts';

// The command line contains the path of the validator's folder, which the work must not find.
process.title = 'validator';
const host = await Host.open();
const capture = new LogCapture();
process.chdir(host.order.workspace);
capture.take(process.stdout, 'stdout');
const complain = process.stderr.write.bind(process.stderr);
capture.take(process.stderr, 'stderr');
// An uncaught error ends the process, so it must be visible outside.
process.on('uncaughtExceptionMonitor', (error) => complain(`${describe(error)}\n`));

try {
  await import(host.order.validator);
} catch (error) {
  await host.send({ kind: 'broken', message: describe(error) });
  process.exit(1);
}
for (const validation of registered) {
  await host.send({ kind: 'begin', name: validation.name });
  await host.send(await attempt(validation, host, capture));
  // Programs that a validation did not wait for must not run during the next one.
  if (host.isAwaited) await host.call({ kind: 'end-work' });
}
await host.send({ kind: 'end' });
process.exit(0);
