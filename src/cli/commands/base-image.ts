import { Command } from '@commander-js/extra-typings';
import { CommandContext } from '../context.ts';
import { hostCertificates } from '../host-certificates.ts';

export function baseImageCommand() {
  return new Command('base-image')
    .description(
      'make the image offsite/base on the engine if it is missing: pull it from a registry, or build it',
    )
    .option('--force', 'build it again')
    .option('--config <file>', 'the configuration')
    .action(async (options) => {
      // Only this command needs this module and its libraries.
      const { ensureBaseImage } = await import('../../base-image/ensure-base-image.ts');
      await using context = CommandContext.open(options);
      const { config, env, out, err } = context;
      const { signal } = context.interruption();
      const engine = await context.engine(signal);
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
