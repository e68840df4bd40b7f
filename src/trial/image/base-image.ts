import { OffsiteError, type OffsiteErrorOptions } from '../../base/offsite-error.ts';
import { baseImageRecipe, baseImageRecipes } from '../../base-image/recipe.ts';
import { assertEnforceable } from '../../engine/capabilities.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Image } from '../../engine/port/images.ts';
import type { CaseExtras, Sandbox } from '../../suite/plan.ts';
import { missingLabel } from '../../suite/quantities.ts';
import { containerSpec, defaultContext, engineNetwork } from '../container-spec.ts';
import type { ObserveBuild } from './build-event.ts';
import { obtainImage, ownImage, type PullParts, whyMissing } from './obtain-image.ts';

/**
 * The image that a sandbox names, found in one round trip or pulled. Throws `IMAGE_MISSING` if there is none.
 */
export async function baseImage(parts: PullParts, sandbox: Sandbox, signal: AbortSignal): Promise<Image> {
  const { image, name } = sandbox;
  const obtained = await obtainImage(parts, image, signal);
  if (obtained.kind === 'found') return obtained.image;
  const isOurs = ownImage.test(image);
  const flavour = Object.entries(baseImageRecipes).find(([, { tag }]) => image === `offsite/base:${tag}`);
  const python = flavour && flavour[1] !== baseImageRecipe ? ` --python ${flavour[0]}` : '';
  throw new SandboxRefused(
    { sandbox: name, setting: 'image' },
    `the engine has no image ${image}, which the sandbox "${name}" names${whyMissing(obtained)}`,
    {
      code: 'IMAGE_MISSING',
      // The configuration names this image. Only the user can provide it, even if the problem is that a
      // registry does not answer.
      kind: isOurs ? 'infrastructure' : 'input',
      hint: isOurs ? `Build it: offsite engine base-image${python}` : `Pull it: docker pull ${image}`,
    },
  );
}

/** A sandbox of the configuration, and the setting of it that is wrong, if it is one. */
interface RefusedSetting {
  sandbox: string;
  setting?: 'image' | undefined;
}

/** An engine has no image for a sandbox of the configuration, or cannot provide what it requires. */
export class SandboxRefused extends OffsiteError {
  override readonly name = 'SandboxRefused';
  readonly refused: RefusedSetting;

  constructor(refused: RefusedSetting, message: string, options: OffsiteErrorOptions) {
    super(message, options);
    this.refused = refused;
  }
}

export interface CheckedPlan {
  variants: readonly { sandbox: Sandbox }[];
  /** A plan that an older Offsite stored has no environments. */
  cases: readonly {
    local: Partial<Pick<CaseExtras, 'environment' | 'tests'>> & {
      steps?: { list: readonly Pick<CaseExtras, 'tests'>[] } | undefined;
    };
  }[];
}

/**
 * Throws if this engine cannot run one of the sandboxes, so that a batch fails before it starts anything.
 * The images that its cases name are looked for later.
 */
export async function checkSandboxes(
  engine: Engine,
  { variants, cases }: CheckedPlan,
  signal: AbortSignal,
  observeBuild: ObserveBuild = () => undefined,
): Promise<void> {
  const usesImage = cases.some(({ local: { environment } }) => !environment?.image && !environment?.build);
  for (const sandbox of new Map(variants.map(({ sandbox }) => [sandbox.name, sandbox])).values()) {
    const imageId = usesImage ? (await baseImage({ engine, observeBuild }, sandbox, signal)).id : '';
    const network = engineNetwork(sandbox);
    const spec = { ...containerSpec(sandbox, defaultContext, { network, labels: {} }), imageId };
    requireEnforceable(sandbox, spec, engine);
    requireLabels([...(sandbox.needs ?? []), ...cases.flatMap(needsOf)], engine);
  }
}

function requireEnforceable({ name }: Sandbox, spec: ContainerSpec, { capabilities }: Engine): void {
  try {
    assertEnforceable(spec, capabilities, name);
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    const { message, code, kind, hint } = error;
    throw new SandboxRefused({ sandbox: name }, message, { code, kind, ...(hint && { hint }), cause: error });
  }
}

/** The labels that a case needs besides those of its sandbox. */
export function needsOf({ local: { environment, tests, steps } }: CheckedPlan['cases'][number]): string[] {
  const graded = [tests, ...(steps?.list ?? []).map((step) => step.tests)];
  return [environment, ...graded.map((one) => one?.fresh?.environment)].flatMap((one) => one?.needs ?? []);
}

/** Throws `LABEL_MISSING`. */
function requireLabels(needs: readonly string[], { labels, capabilities }: Engine): void {
  const missing = missingLabel(needs, { labels, arch: capabilities.arch });
  if (missing === undefined) return;
  throw new OffsiteError(`a sandbox needs ${missing}, which this machine does not have`, {
    code: 'LABEL_MISSING',
    kind: 'input',
    hint: 'If the machine has it, name it under labels in offsite.yaml. Otherwise run the suite on another one.',
  });
}
