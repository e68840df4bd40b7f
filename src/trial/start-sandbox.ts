import { OffsiteError } from '../base/offsite-error.ts';
import { unmetWishes } from '../engine/capabilities.ts';
import { type Kit, readKit } from '../engine/changes/kit.ts';
import type { Container } from '../engine/container.ts';
import type { Engine } from '../engine/engine.ts';
import { OncePerImage } from './image/once-per-image.ts';
import type { StartImage } from './image/start-image.ts';
import type { GivenParts, SandboxMaker } from './make-sandbox.ts';
import type { TrialSpec } from './spec.ts';
import { removeSandbox, type StartedSandbox } from './started-sandbox.ts';
import {
  refuseVisible,
  searchKey,
  searchLacks,
  searchOf,
  searchVisible,
  type Visible,
} from './visible-answers.ts';
import { keepTexts } from './workspace/file-texts.ts';
import {
  readWorkspace,
  smallWorkspace,
  type WorkspaceState,
  workspaceBytes,
} from './workspace/read-workspace.ts';
import type { TextPack } from './workspace/text-pack.ts';

/**
 * Starts sandboxes, and reads what is in them. What is the same in all sandboxes of an image is read once.
 */
export class SandboxStarter {
  readonly #engine: Engine;
  readonly #maker: SandboxMaker;
  readonly #texts: TextPack;
  readonly #preparedBytes = new OncePerImage<number>();
  readonly #baselines = new OncePerImage<WorkspaceState>();
  readonly #visible = new OncePerImage<Visible>();
  /** Whether the engine's disk can be seen, with one key. */
  readonly #seesDisk = new OncePerImage<boolean>();
  /** Keyed by the first image: a kit works in all images that are made from it. */
  readonly #kits = new OncePerImage<Kit | undefined>();

  /** @param texts where the texts of prepared workspaces are kept */
  constructor(engine: Engine, maker: SandboxMaker, texts: TextPack) {
    this.#engine = engine;
    this.#maker = maker;
    this.#texts = texts;
  }

  /** Returns a started sandbox of the trial's prepared image. */
  async start(
    spec: TrialSpec,
    signal: AbortSignal,
    given: GivenParts = { grades: false, services: undefined },
  ): Promise<StartedSandbox> {
    const { preparedHere, start, ...made } = await this.#maker.make(spec, signal, given).catch((error) => {
      const isGone = error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND';
      if (!isGone || signal.aborted) throw error;
      // Somebody removed an image after this batch last checked.
      this.#maker.forget();
      return this.#maker.make(spec, signal, given);
    });
    const { imageId, container } = made;
    try {
      const read = () => readWorkspace(container, signal, keepTexts(this.#texts));
      // What runs there may have written to the workspace.
      const isItsOwn = preparedHere || made.startUp !== undefined;
      const isDiskSeen = await this.#seesDisk.of('', signal, () => container.seesDisk(signal));
      const [unsearched, before] = await Promise.all([
        given.grades ? [] : this.#refuseVisible(spec, made, signal),
        isItsOwn ? read() : this.#baselines.of(imageId, signal, read),
      ]);
      const count = () => workspaceBytes(container, signal);
      const preparedBytes =
        before === 'large' ? await this.#preparedBytes.of(imageId, signal, count) : smallWorkspace;
      const lacks = [
        ...unmetWishes(spec.sandbox, this.#engine.capabilities),
        ...openTo(start),
        ...unsearched,
        ...(isDiskSeen ? [] : [uncountedDisk(container)]),
      ];
      const kit = await this.#kit(spec, start.id, container, signal);
      const { user, closedEnv } = start;
      const isCommittable = !preparedHere && !start.hasVolumes;
      return { ...made, user, closedEnv, isCommittable, lacks, before, preparedBytes, kit };
    } catch (error) {
      await removeSandbox(made);
      throw error;
    }
  }

  /**
   * Throws a TrialFailure if an agent could find what grades or solves its case. Each image is searched once.
   * Resolves with what could not be searched or decided, and why.
   */
  async #refuseVisible(
    spec: TrialSpec,
    { imageId, container }: Pick<StartedSandbox, 'imageId' | 'container'>,
    signal: AbortSignal,
  ): Promise<string[]> {
    const search = searchOf(spec);
    if (!search) return [];
    const look = () => searchVisible(container, search, signal);
    const visible = await this.#visible.of(`${imageId} ${searchKey(search)}`, signal, look);
    refuseVisible(visible);
    return searchLacks(visible);
  }

  async #kit(
    spec: TrialSpec,
    startId: string,
    container: Container,
    signal: AbortSignal,
  ): Promise<Kit | undefined> {
    if (spec.verify === undefined || !this.#engine.capabilities.keepsImageTimes) return undefined;
    return this.#kits.of(startId, signal, async () => {
      const isReadable = (await container.layerPaths({ except: [], signal })) !== undefined;
      return isReadable ? undefined : readKit(container, signal);
    });
  }
}

/** The agent's files are in the sandbox that verify runs in, so these variables let it run or load them. */
function openTo({ openVariables }: StartImage): string[] {
  if (openVariables.length === 0) return [];
  const names = openVariables.join(', ');
  return [
    `programs that the agent cannot replace: ${names} of the environment names a folder in the workspace`,
  ];
}

function uncountedDisk({ hasQuota }: Container): string {
  const where = hasQuota ? ' where it is graded' : '';
  return `an exact disk limit${where}: the disk of its engine cannot be read by this process as root`;
}
