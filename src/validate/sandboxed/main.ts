/**
 * Runs a validator module inside the sandbox: reads its order from stdin, and prints a record for each of its
 * validations.
 */
import { registered } from './api.ts';
import { attempt } from './attempt.ts';
import { describe } from './failure-text.ts';
import { Host } from './host.ts';
import { LogCapture } from './logs.ts';

// Its command line names the folder that the work must not find.
process.title = 'validator';
const host = await Host.open();
const capture = new LogCapture();
process.chdir(host.order.workspace);
capture.take(process.stdout, 'stdout');
const complain = process.stderr.write.bind(process.stderr);
capture.take(process.stderr, 'stderr');
// What nobody caught ends the process, and must be seen outside of it.
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
  // What a validation did not wait for is not there for the next one.
  if (host.isAwaited) await host.call({ kind: 'still' });
}
await host.send({ kind: 'end' });
process.exit(0);
