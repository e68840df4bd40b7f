import { randomUUID } from 'node:crypto';
import { Command } from '@commander-js/extra-typings';
import { systemClock } from '../../clock.ts';
import { connectEngine } from '../../engine/connect.ts';
import { loadConfig } from '../../suite/config-file.ts';
import { hostCertificates } from '../host-certificates.ts';
import { interruption } from '../interruption.ts';
import { openTerminal } from '../terminal.ts';

export function baseImageCommand() {
  return new Command('base-image')
    .description(
      'make the image offsite/base on the engine, if it is not there: pulled where a registry answers, else built',
    )
    .option('--force', 'build it anew')
    .option('--config <file>', 'the configuration')
    .action(async (options) => {
      // Other commands do without the programs that it takes.
      const { ensureBaseImage } = await import('../../base-image/ensure-base-image.ts');
      const { env } = process;
      const { out, err } = openTerminal();
      const config = loadConfig({ named: options.config, env });
      using interrupted = interruption((message) => err.print(message));
      const { signal } = interrupted;
      await using engine = await connectEngine({
        host: config.engine?.host,
        env,
        instance: randomUUID(),
        signal,
        clock: systemClock,
      });
      const caBundle = await hostCertificates(config, env);
      const image = await ensureBaseImage({
        engine: engine.port,
        log: (line) => err.print(line),
        ...(caBundle && { caBundle }),
        signal,
        force: options.force === true,
        env,
      });
      out.print(`${image.name} (${image.built}): ${image.id}`);
    });
}
