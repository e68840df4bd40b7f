import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import type { Gateway, GatewaySession } from './gateway.ts';
import type { GatewayOptions, GatewayParts } from './gateway-parts.ts';
import { hostNetwork } from './hosts/proxy.ts';
import { ModelLimits } from './limits/model-limits.ts';
import { replayingModels } from './replay/replaying-models.ts';
import { openRoom } from './room.ts';
import { limitOf, type ServedModel, serveModel } from './served-model.ts';
import { openSession } from './session.ts';

/**
 * Creates the gateway of this process. It does not connect yet, and needs only the keys of models that a
 * session requests: `open` throws an input error for a model that is not configured (`MODEL_UNKNOWN`) or has
 * no key (`MODEL_KEY_MISSING`). Disposing ends the sessions.
 */
export function openGateway(options: GatewayOptions): Gateway {
  const parts: GatewayParts = {
    random: Math.random,
    network: hostNetwork,
    room: openRoom(options.clock),
    ...options,
    limits: options.limits ?? new ModelLimits(options.clock),
  };
  const served = new Map<string, ServedModel>();
  const sessions = new Set<GatewaySession>();

  const serve = (asked: string): ServedModel => {
    const name = ownName(asked, parts.models);
    const known = served.get(name);
    if (known) return known;
    const config = Object.hasOwn(parts.models, name) ? parts.models[name] : undefined;
    if (!config) throw unknownModel(name, Object.keys(parts.models));
    const model = serveModel(name, config, parts);
    // A script counts the faults that it has simulated, so each session has its own.
    if (!('scripted' in config)) served.set(name, model);
    return model;
  };
  const presenceOf = (name: string) => served.get(ownName(name, parts.models))?.presence;
  return {
    limitOf(asked) {
      const name = ownName(asked, parts.models);
      const config = Object.hasOwn(parts.models, name) ? parts.models[name] : undefined;
      return config && 'baseUrl' in config ? limitOf(name, config, parts) : undefined;
    },
    isAbsent: (asked) => asked.some((name) => presenceOf(name)?.isAbsent === true),
    isUnreachable: (asked) => presenceOf(asked)?.isUnreachable === true,
    limits: () => parts.limits.all(),
    open(request) {
      const session = openSession(request, parts, replayingModels(request, parts, serve));
      const dispose = session[Symbol.asyncDispose].bind(session);
      const own: GatewaySession = {
        ...session,
        async [Symbol.asyncDispose]() {
          sessions.delete(own);
          await dispose();
        },
      };
      sessions.add(own);
      return own;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...sessions].map((session) => session[Symbol.asyncDispose]()));
      await Promise.all([...served.values()].map((model) => model[Symbol.asyncDispose]()));
    },
  };
}

/** The configured name of a model, given that name or one of its aliases. */
export function ownName(asked: string, models: GatewayOptions['models']): string {
  if (Object.hasOwn(models, asked)) return asked;
  return Object.keys(models).find((name) => models[name]?.aliases.includes(asked)) ?? asked;
}

export function unknownModel(name: string, known: readonly string[]): OffsiteError {
  return inputError('MODEL_UNKNOWN', `there is no model ${name} in the configuration`, {
    hint:
      known.length === 0
        ? 'Models are configured under models in offsite.yaml.'
        : `offsite.yaml has: ${known.join(', ')}.`,
  });
}
