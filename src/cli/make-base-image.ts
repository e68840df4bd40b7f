import { enginesOf } from '../agent/engines/check.ts';
import type { AwayEngine } from '../api/engines.ts';
import { hostCertificates } from '../api/host-certificates.ts';
import type { BaseImage, BaseImageOptions } from '../base-image/ensure-base-image.ts';
import type { CommandContext } from './context.ts';

/** A base image, and the name of its engine if several are configured. */
interface MadeImage extends BaseImage {
  engine: string | undefined;
}

/** Makes the base image on each engine that lacks it, and shows the progress. Disposes the context. */
export async function makeBaseImage(
  opened: CommandContext,
  options: Pick<BaseImageOptions, 'force' | 'recipe'> = {},
): Promise<{ made: MadeImage[]; away: AwayEngine[] }> {
  // Only two commands need this module and its libraries.
  const { ensureBaseImage } = await import('../base-image/ensure-base-image.ts');
  await using context = opened;
  const { config, env } = context;
  using progress = await context.progress();
  const { signal } = context.interruption();
  const { away, ...engines } = await context.engines.all(signal);
  const caBundle = await hostCertificates(config, env);
  const made: MadeImage[] = [];
  for (const engine of enginesOf(engines)) {
    const image = await ensureBaseImage({
      engine: engine.port,
      log: progress.note,
      during: progress.during,
      caBundle: caBundle?.path,
      signal,
      env,
      ...options,
    });
    made.push({ ...image, engine: engine.name });
  }
  return { made, away };
}
