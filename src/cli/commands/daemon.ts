import { Command } from '@commander-js/extra-typings';
import { address, wholeNumber, withConfigAndData } from '../options.ts';

export function daemonCommand() {
  return withConfigAndData(new Command('daemon'))
    .description(
      'find runs that others have queued, run their trials and report them, until stopped: SIGTERM drains, ' +
        'a second SIGTERM queues running trials again and ends, a third ends at once; ' +
        'SIGHUP reads the configuration again',
    )
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option('--once', 'end when everything queued has run and is reported; failed trials change no exit code')
    .option(
      '--listen <address>',
      'serve /healthz, /readyz, /metrics and /status there, such as 127.0.0.1:9320 (default: nowhere)',
      address,
    )
    .option('--insecure-http', 'allow plain http to a service that is not on this machine')
    .action(async (options) => {
      // The module loads libraries that would add 50 ms to the start of every other command.
      const { runDaemon } = await import('../daemon/run-daemon.ts');
      process.exitCode = await runDaemon(options);
    });
}
