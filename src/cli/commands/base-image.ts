import { Command } from '@commander-js/extra-typings';
import { CommandContext } from '../context.ts';
import { hostCertificates } from '../host-certificates.ts';
import { openProgress } from '../output/progress.ts';

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
      const { config, env, clock, out, err } = context;
      using progress = await openProgress({ err, env, clock });
      context.note = progress.note;
      const { signal } = context.interruption();
      const engine = await context.engine(signal);
      const caBundle = await hostCertificates(config, env);
      const image = await ensureBaseImage({
        engine: engine.port,
        log: progress.note,
        during: progress.during,
        ...(caBundle && { caBundle }),
        signal,
        force: options.force === true,
        env,
      });
      progress[Symbol.dispose]();
      out.print(`${image.name} (${image.built}): ${image.id}`);
    });
}
