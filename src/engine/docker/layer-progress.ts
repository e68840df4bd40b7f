import { registryLayers } from '../../bounds/suite.ts';
import type { PullProgress } from '../port/images.ts';
import type { EngineLine } from './engine-lines.ts';

/** Adds up the layers of an image as they arrive. */
export class LayerProgress {
  readonly #layers = new Map<string, PullProgress>();

  /** Whether the line says something new about a layer's download. */
  take({ id, status, progressDetail }: EngineLine): boolean {
    if (id === undefined) return false;
    const known = this.#layers.get(id);
    if (status === 'Download complete' && known) known.bytes = known.total;
    else if (status === 'Downloading' && (known || this.#layers.size < registryLayers.count.layers)) {
      const { current, total } = progressDetail ?? {};
      this.#layers.set(id, { bytes: Number(current) || 0, total: Number(total) || 0 });
    } else return false;
    return true;
  }

  sum(): PullProgress {
    const layers = [...this.#layers.values()];
    const bytes = layers.reduce((sum, layer) => sum + layer.bytes, 0);
    return { bytes, total: layers.reduce((sum, layer) => sum + layer.total, 0) };
  }
}
