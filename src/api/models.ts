import type { Clock } from '../base/clock.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { GatewayOptions } from '../gateway/gateway-parts.ts';
import type { ModelLimits } from '../gateway/limits/model-limits.ts';
import type { Config } from '../suite/config-file.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { ScriptFile } from '../suite/script-file.ts';
import { readYamlFile } from '../suite/yaml-file.ts';

interface ContextModelsOptions {
  env: NodeJS.ProcessEnv;
  dataFolder: string;
  clock: Clock;
  /** The certificates, as PEM, that this host trusts in addition to the public authorities. */
  certificates: () => Promise<Buffer | undefined>;
  note: (message: string) => void;
}

/** How a command reaches models. */
export class ContextModels {
  /** The permits for requests to models, if other machines share them. Set it before a gateway is opened. */
  permits: GatewayOptions['permits'];
  readonly #options: ContextModelsOptions;
  #limits: Promise<ModelLimits> | undefined;

  constructor(options: ContextModelsOptions) {
    this.#options = options;
  }

  /**
   * Opens a gateway to the configured models. The caller closes it.
   *
   * @param limits the limits that gateways share; for a gateway that trials use
   */
  async gateway(models: Config['models'], limits?: GatewayOptions['limits']): Promise<Gateway> {
    const { openGateway } = await import('../gateway/open-gateway.ts');
    return openGateway({ ...(await this.gatewayOptions(models)), limits });
  }

  /** Forgets what the server of a model refused, so that it is asked for everything again. */
  async forgetRefused(name: string, model: Config['models'][string]): Promise<void> {
    if (!('baseUrl' in model)) return;
    const { serverKey } = await import('../gateway/options/refused-options.ts');
    const { RefusedOptionsFile } = await import('../ledger/refused-options.ts');
    const key = serverKey(name, model);
    new RefusedOptionsFile(this.#options.dataFolder).forget((one) => one.endsWith(` ${key}`));
  }

  async gatewayOptions(models: Config['models']): Promise<GatewayOptions> {
    const { env, dataFolder, clock, certificates, note } = this.#options;
    const { permits } = this;
    const caBundle = await certificates();
    const { scriptedUpstream } = await import('../gateway/scripted/scripted-upstream.ts');
    const scripted = (file: string) => scriptedUpstream(file, clock);
    const { readCassette } = await import('../gateway/replay/cassette-file.ts');
    const cassette = onceFor(readCassette);
    const { RefusedOptionsFile } = await import('../ledger/refused-options.ts');
    const refused = new RefusedOptionsFile(dataFolder);
    return { models, env, clock, caBundle, scripted, cassette, permits, note, refused };
  }

  /** The limits of models that adapt, shared by the gateways of this process. */
  sharedLimits(): Promise<ModelLimits> {
    this.#limits ??= import('../gateway/limits/model-limits.ts').then(
      ({ ModelLimits }) => new ModelLimits(this.#options.clock),
    );
    return this.#limits;
  }
}

/** Calls a function once for each argument. */
function onceFor<Result>(read: (name: string) => Result): (name: string) => Result {
  const known = new Map<string, Result>();
  return (name) => {
    const result = known.get(name) ?? read(name);
    known.set(name, result);
    return result;
  };
}

/**
 * Reads the scripts of those models that have one. Throws `BadFile` with the problems of all of them, or an
 * `input` error if a file cannot be read.
 */
export async function requireScripts(names: readonly string[], models: Config['models']): Promise<void> {
  const { ownName } = await import('../gateway/open-gateway.ts');
  const issues: FileIssue[] = [];
  for (const name of new Set(names.map((asked) => ownName(asked, models)))) {
    const model = models[name];
    if (!model || !('scripted' in model)) continue;
    try {
      readYamlFile(model.scripted, ScriptFile);
    } catch (error) {
      if (!(error instanceof BadFile)) throw error;
      issues.push(...error.issues);
    }
  }
  if (issues.length > 0) throw new BadFile(issues);
}
